"""A page that shows how strong an agent is: one HTML file with everything in it, readable without scripts."""

import io
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from tradgames_env.position import Position
from tradgames_env.rendering import changed_sites, svg
from training.evaluate import TOO_REPETITIVE, Evaluation, elo_interval_text, elo_text, percent_with_interval
from training.exploitability import Exploitability, exploitability_lines
from training.intervals import Interval
from training.markup import Html, data_uri, element, join
from training.match import SIDES, Frame, GameRecord, MatchResult, replay
from training.metrics import METRICS_FILE, draw_curves
from training.ratings import Rating
from training.regret import HEADINGS, Mistake, RegretReport, comparison, notes, regret_rows, regret_text
from training.report_style import CSS, SCRIPT

PAGE_FILE = "index.html"

MOST_POSITIONS = 400
"""A longer game is shown up to this many positions."""

_ACCENT, _INK, _FAINT, _GRID = "#0b62a8", "#2a241e", "#6b5d4d", "#e0d5c1"
_BOARD_SIZE = 480
_STOPPED = "The evaluation was stopped early. Only whole pairs of games count, and short games are over-represented."


def write_report(
    evaluation: Evaluation, facts: Mapping[str, Any], folder: pathlib.Path, run_dir: pathlib.Path | None = None
) -> pathlib.Path:
    """Write ``index.html`` and return its path.

    Args:
        evaluation: what was measured.
        facts: from ``provenance``.
        folder: made if missing.
        run_dir: folder of a training run whose curves are shown; none when None.

    Raises:
        ValueError: ``run_dir`` holds no metrics.
        OSError: the page cannot be written.
    """
    page = build_report(evaluation, facts, run_dir)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / PAGE_FILE
    path.write_text(page, encoding="utf-8")
    return path


def build_report(evaluation: Evaluation, facts: Mapping[str, Any], run_dir: pathlib.Path | None = None) -> str:
    """The page as text; arguments and errors as ``write_report``."""
    rules = evaluation.ruleset.rules
    title = f"{evaluation.agent} at {rules.title}"
    body = element(
        "main",
        element("h1", title),
        element("p", _lead(evaluation), class_="lead"),
        _tiles(evaluation),
        _results(evaluation),
        _ratings(evaluation),
        _by_the_table(evaluation),
        None if run_dir is None else _curves(run_dir),
        _game(evaluation),
        _notes(evaluation, facts),
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", Html(CSS)),
    )
    page = element("html", head, element("body", body, element("script", Html(SCRIPT))), lang="en")
    return f"<!DOCTYPE html>\n{page}\n"


def _lead(evaluation: Evaluation) -> str:
    ruleset = evaluation.ruleset
    opponents = sum(evaluation.agent in (match.agent, match.opponent) for match in evaluation.matches)
    games = sum(match.games for match in evaluation.matches)
    return (
        f"Variant {ruleset.label.removeprefix(ruleset.game + '/')}. {games} games, {opponents} "
        f"{'opponent' if opponents == 1 else 'opponents'}, every opening played from both sides."
    )


def _card(heading: str, *children: object) -> Html:
    return element("section", element("h2", heading), *children, class_="card")


# -- results -----------------------------------------------------------------------------------------------------


def _tiles(evaluation: Evaluation) -> Html:
    tiles = [
        element(
            "div",
            element("div", f"score against {match.opponent}"),
            element("div", f"{100 * match.score:.1f} %", class_="number"),
            element("div", f"95 % interval {_range(match.score_interval)}", class_="range"),
            class_="card tile",
        )
        for match in evaluation.matches
        if match.agent == evaluation.agent
    ]
    return element("div", *tiles, class_="tiles")


def _range(interval: Interval) -> str:
    return f"{100 * interval[0]:.1f} to {100 * interval[1]:.1f}"


def _results(evaluation: Evaluation) -> Html:
    headings = ("match", "", "won", "drawn", "lost", "score, 95 % interval", "won, 95 % interval")
    rows = [element("tr", *(element("th", heading) for heading in headings))]
    rows += [_result_row(match) for match in evaluation.matches]
    keys = join(*(join(element("span", class_=f"key {kind}"), kind) for kind in ("won", "drawn", "lost")))
    warnings = [element("p", text, class_="warn") for text in _warnings(evaluation)]
    return _card(
        "Results",
        element("div", element("table", *rows), class_="scroll"),
        element("p", keys, class_="legend", style="margin-top: 12px"),
        *warnings,
        element("details", element("summary", "By side and by ending"), _breakdown(evaluation.matches)),
        element("details", element("summary", "Length, repetition and time"), _pace(evaluation.matches)),
    )


def _result_row(match: MatchResult) -> Html:
    shares = (
        percent_with_interval(match.score, match.score_interval),
        percent_with_interval(match.wins / match.games, match.win_interval),
    )
    return element(
        "tr",
        element("td", f"{match.agent} – {match.opponent}", class_="name"),
        element("td", _bar(match)),
        *(element("td", cell) for cell in (match.wins, match.draws, match.losses, *shares)),
    )


def _bar(match: MatchResult) -> Html:
    parts = (("won", match.wins), ("drawn", match.draws), ("lost", match.losses))
    spans = [element("span", class_=kind, style=f"width: {100 * n / match.games:.2f}%") for kind, n in parts if n]
    words = ", ".join(f"{n} {kind}" for kind, n in parts)
    return element("div", *spans, class_="bar", role="img", aria_label=words, title=words)


def _warnings(evaluation: Evaluation) -> list[str]:
    warnings = [_STOPPED] if evaluation.stopped else []
    for match in evaluation.matches:
        if match.truncated:
            warnings.append(f"{match.agent} – {match.opponent}: {match.truncated} stopped games count as draws.")
        if match.repeated > TOO_REPETITIVE:
            warnings.append(
                f"{match.agent} – {match.opponent}: {100 * match.repeated:.0f} % of the games repeat another one, so "
                "the intervals are too narrow."
            )
    return warnings


def _breakdown(matches: Sequence[MatchResult]) -> Html:
    rows = [element("tr", *(element("th", text) for text in ("match", "", "won", "drawn", "lost")))]
    for match in matches:
        groups = [(f"as {side}", tally) for side, tally in match.by_side.items()]
        groups += [(f"ended by {reason}", tally) for reason, tally in match.by_reason.items()]
        for number, (name, tally) in enumerate(groups):
            label = f"{match.agent} – {match.opponent}" if number == 0 else ""
            cells = (element("td", value) for value in tally)
            rows.append(element("tr", element("td", label), element("td", name, class_="left"), *cells))
    return element("div", element("table", *rows), class_="scroll")


def _pace(matches: Sequence[MatchResult]) -> Html:
    headings = ("match", "moves a game", "games that repeat another", "stopped games", "ms a move", "opponent's")
    rows = [element("tr", *(element("th", heading) for heading in headings))]
    for match in matches:
        own, other = (f"{1000 * seconds:.2g}" for seconds in match.seconds_per_move)
        cells = (f"{match.mean_length:.0f}", f"{100 * match.repeated:.1f} %", match.truncated, own, other)
        name = element("td", f"{match.agent} – {match.opponent}")
        rows.append(element("tr", name, *(element("td", cell) for cell in cells)))
    return element("div", element("table", *rows), class_="scroll")


# -- ratings and curves ------------------------------------------------------------------------------------------


def _ratings(evaluation: Evaluation) -> Html | None:
    rated = [rating for rating in evaluation.ratings if rating.elo is not None]
    if len(rated) < 2:
        return None
    rows = [element("tr", *(element("th", text) for text in ("player", "Elo", "95 %", "games")))]
    for rating in evaluation.ratings:
        cells = (elo_text(rating.elo), elo_interval_text(rating), rating.games)
        rows.append(element("tr", element("td", rating.name), *(element("td", cell) for cell in cells)))
    caption = (
        f"Elo with 95 % intervals, {evaluation.anchor} = 0: Bradley–Terry fit to all results, draws as half a win, two "
        "imagined draws between players who met; Bayesian bootstrap over pairs of games."
    )
    picture = element("img", src=data_uri(ratings_plot(rated), "image/svg+xml"), alt="Ratings, as in the table below")
    table = element("details", element("summary", "As a table"), element("table", *rows))
    figure = element("figure", element("div", picture, class_="scroll"), element("figcaption", caption))
    return _card("Ratings", figure, table)


def ratings_plot(ratings: Sequence[Rating]) -> str:
    """An SVG document: a dot and its interval for each rated player, the best on top."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 0.9 + 0.5 * len(ratings)), layout="constrained")
    FigureCanvasSVG(figure)
    axes = figure.subplots()
    places = range(len(ratings) - 1, -1, -1)
    axes.axvline(0, color=_GRID, linewidth=2, zorder=0)
    for place, rating in zip(places, ratings, strict=True):
        assert rating.elo is not None
        assert rating.low is not None
        assert rating.high is not None
        axes.plot([rating.low, rating.high], [place, place], color=_ACCENT, linewidth=4, alpha=0.35)
        axes.plot([rating.elo], [place], "o", color=_ACCENT, markersize=9)
        axes.annotate(
            elo_text(rating.elo), (rating.elo, place), (0, 9), textcoords="offset points",
            ha="center", fontsize=10, color=_INK,
        )  # fmt: skip
    names = [_shortened(rating.name) for rating in ratings]
    axes.set_yticks(list(places), names, fontsize=11, parse_math=False)
    axes.set_ylim(-0.6, len(ratings) - 0.35)
    axes.set_xlabel("Elo", fontsize=10, color=_FAINT)
    axes.margins(x=0.06)
    axes.grid(visible=True, axis="x", color=_GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelcolor=_FAINT)
    axes.spines[:].set_visible(False)
    figure.patch.set_alpha(0.0)
    axes.patch.set_alpha(0.0)
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def _shortened(name: str, most: int = 40) -> str:
    return name if len(name) <= most else f"…{name[1 - most :]}"


def _curves(run_dir: pathlib.Path) -> Html:
    path = draw_curves(run_dir, "")
    if path is None:
        raise ValueError(f"{run_dir} holds no {METRICS_FILE} with anything in it, so there are no training curves")
    source = data_uri(path.read_bytes(), "image/png")
    picture = element("img", src=source, alt="Curves of the training run", class_="on-white")
    caption = f"Self-play during training, from {METRICS_FILE}."
    return _card(
        "Training", element("figure", element("div", picture, class_="scroll"), element("figcaption", caption))
    )


# -- by the table of exact values ----------------------------------------------------------------------------------


def _by_the_table(evaluation: Evaluation) -> Html | None:
    """The card of regret and exploitability, None where neither was asked for."""
    parts = [
        *([] if evaluation.regret is None else _regret(evaluation.regret)),
        *([] if evaluation.exploitability is None else _exploitability(evaluation.exploitability)),
    ]
    return _card("Against perfect play", *parts) if parts else None


def _regret(regret: RegretReport) -> list[Html]:
    rows = [element("tr", *(element("th", heading) for heading in HEADINGS))]
    rows += [element("tr", *(element("td", cell) for cell in cells)) for cells in regret_rows(regret)]
    intro = (
        f"What the moves of {regret.agent} cost by the table of exact values: the value of the best move less that of "
        f"the move played, in {regret.unit}."
    )
    table = element("div", element("table", *rows), class_="scroll")
    lines = [element("p", note, class_="note") for note in notes(regret)]
    if not regret.worst:
        return [element("p", intro), table, *lines]
    heading = element("p", "The worst positions; the better move changes what stands on the blue squares.")
    gallery = element("div", *(_mistake(regret, mistake) for mistake in regret.worst), class_="gallery")
    return [element("p", intro), table, *lines, heading, gallery]


def _mistake(regret: RegretReport, mistake: Mistake) -> Html:
    """A position in which the agent erred; the squares that the better move changes are tinted."""
    after = mistake.position.copy()
    after.push(mistake.better)
    picture = svg(mistake.position, size=_BOARD_SIZE, last_move=changed_sites(mistake.position, after))
    image = element("img", src=data_uri(picture, "image/svg+xml"), alt=mistake.position.text())
    caption = f"Regret {regret_text(regret, mistake)}: played {comparison(mistake)}."
    return element("figure", image, element("figcaption", caption))


def _exploitability(result: Exploitability) -> list[Html]:
    return [element("p", line) for line in exploitability_lines(result)]


# -- a game ------------------------------------------------------------------------------------------------------


def sample_game(evaluation: Evaluation) -> tuple[MatchResult, GameRecord] | None:
    """A game to look at: of typical length, if possible won by the agent, against whoever it found hardest."""
    own = [match for match in evaluation.matches if match.agent == evaluation.agent]
    if not own:
        return None
    match = min(own, key=lambda result: result.score)
    for points in (1.0, 0.0, 0.5):
        games = sorted((r for r in match.records if r.points == points), key=lambda record: len(record.actions))
        if games:
            return match, games[len(games) // 2]
    return None


def _game(evaluation: Evaluation) -> Html | None:
    sample = sample_game(evaluation)
    if sample is None:
        return None
    match, record = sample
    frames = list(replay(evaluation.ruleset, record))
    shown = frames[:MOST_POSITIONS]
    players = (match.agent, match.opponent) if record.agent_side == 0 else (match.opponent, match.agent)
    ending = "drawn" if record.winner is None else f"{players[record.winner]} won as {SIDES[record.winner]}"
    text = f"{players[0]} (natural) – {players[1]} (black): {ending}, {record.reason}, {len(record.actions)} moves."
    if record.opening:
        text += f" The first {record.opening} moves, in italics, are the random opening."
    if len(shown) < len(frames):
        text += f" Only the first {len(shown) - 1} moves are shown."
    boards = [_frame(number, shown[number], shown[number - 1] if number else None) for number in range(len(shown))]
    moves = element("ol", *(_move_item(number, frame) for number, frame in enumerate(shown)))
    return _card(
        "A game",
        element("p", text),
        element("div", *boards, _controls(), element("div", moves, class_="moves"), class_="replay"),
    )


def _controls() -> Html:
    slider = element("input", type="range", min=0, value=0, aria_label="Move shown")
    first, back = _button("first", "«", "To the start"), _button("back", "‹ Back", "One move back")
    forth, last = _button("next", "Next ›", "One move on"), _button("last", "»", "To the end")
    return element("div", first, back, slider, forth, last, class_="controls")


def _button(go: str, label: str, meaning: str) -> Html:
    return element("button", label, type="button", data_go=go, title=meaning, aria_label=meaning)


def _frame(number: int, frame: Frame, before: Frame | None) -> Html:
    touched = None if before is None else touched_sites(before.position, frame.position)
    picture = svg(frame.position, size=_BOARD_SIZE, last_move=touched)
    caption = "Start" if frame.move is None or frame.mover is None else f"{number}. {SIDES[frame.mover]}: {frame.move}"
    image = element("img", src=data_uri(picture, "image/svg+xml"), alt=frame.position.text(), loading="lazy")
    return element("figure", image, element("figcaption", caption), class_="frame", id=f"p{number}")


def touched_sites(before: Position, after: Position) -> tuple[int, ...]:
    """Sites whose pieces a move changed, in natural's frame."""
    rules, options = after.ruleset.rules, after.ruleset.options
    old, new = rules.site_pieces(options, before.rows[0]), rules.site_pieces(options, after.rows[0])
    return tuple(site for site, (was, now) in enumerate(zip(old, new, strict=True)) if was != now)


def _move_item(number: int, frame: Frame) -> Html:
    name = None if frame.mover is None else SIDES[frame.mover]
    side = name and element("span", class_=f"side {name}", title=name)
    link = element("a", element("span", number, class_="ply"), side, frame.move or "start", href=f"#p{number}")
    return element("li", link, class_="random" if frame.in_opening else None)


# -- notes -------------------------------------------------------------------------------------------------------


def _notes(evaluation: Evaluation, facts: Mapping[str, Any]) -> Html:
    ruleset = evaluation.ruleset
    options = ", ".join(f"{name} = {value}" for name, value in ruleset.overrides.items())
    entries = {
        "Command": element("code", facts["command"]),
        "Game": f"{ruleset.rules.title}, variant {ruleset.variant}{', ' if options else ''}{options}, "
        f"rules version {ruleset.rules.version}",
        "Matches": f"{evaluation.games} games each, seed {evaluation.seed}, openings of {evaluation.opening_plies} "
        "random moves, each played twice with sides swapped and the same dice",
        "Intervals": "95 %. Score (win 1, draw ½): Bayesian bootstrap over pairs of games. Share won: Wilson",
        "Machine": "{processor}, {cores} cores, {memory_gib} GiB, {system}".format(**facts["machine"]),
        "Date": facts["date"],
        "Versions": ", ".join(f"{name} {version}" for name, version in facts["versions"].items()),
    }
    items = [part for name, value in entries.items() for part in (element("dt", name), element("dd", value))]
    return _card("How this was measured", element("dl", *items))
