"""A page that shows how strong an agent is: one HTML file with everything in it, readable without scripts."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from tradgames_env.rendering import changed_sites, svg
from training.evaluate import TOO_REPETITIVE, Evaluation, elo_interval_text, elo_text, percent_with_interval
from training.exploitability import Exploitability, exploitability_lines
from training.intervals import Interval
from training.markup import Html, data_uri, element, join
from training.match import GameRecord, MatchResult
from training.metrics import METRICS_FILE, draw_curves
from training.page import BOARD_SIZE, card, game, how_it_was_made, page, plot_figure, ratings_plot, write_page
from training.regret import HEADINGS, Mistake, RegretReport, comparison, notes, regret_rows, regret_text

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
    return write_page(build_report(evaluation, facts, run_dir), folder)


def build_report(evaluation: Evaluation, facts: Mapping[str, Any], run_dir: pathlib.Path | None = None) -> str:
    """The page as text; arguments and errors as ``write_report``."""
    rules = evaluation.ruleset.rules
    title = f"{evaluation.agent} at {rules.title}"
    return page(
        title,
        element("p", _lead(evaluation), class_="lead"),
        _tiles(evaluation),
        _results(evaluation),
        _ratings(evaluation),
        _by_the_table(evaluation),
        None if run_dir is None else _curves(run_dir),
        _game(evaluation),
        _notes(evaluation, facts),
    )


def _lead(evaluation: Evaluation) -> str:
    ruleset = evaluation.ruleset
    opponents = sum(evaluation.agent in (match.agent, match.opponent) for match in evaluation.matches)
    games = sum(match.games for match in evaluation.matches)
    return (
        f"Variant {ruleset.label.removeprefix(ruleset.game + '/')}. {games} games, {opponents} "
        f"{'opponent' if opponents == 1 else 'opponents'}, every opening played from both sides."
    )


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
    return card(
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
    table = element("details", element("summary", "As a table"), element("table", *rows))
    return card("Ratings", plot_figure(ratings_plot(rated), "Ratings, as in the table below", caption), table)


def _curves(run_dir: pathlib.Path) -> Html:
    path = draw_curves(run_dir, "")
    if path is None:
        raise ValueError(f"{run_dir} holds no {METRICS_FILE} with anything in it, so there are no training curves")
    source = data_uri(path.read_bytes(), "image/png")
    picture = element("img", src=source, alt="Curves of the training run", class_="on-white")
    caption = f"Self-play during training, from {METRICS_FILE}."
    return card("Training", element("figure", element("div", picture, class_="scroll"), element("figcaption", caption)))


# -- by the table of exact values ----------------------------------------------------------------------------------


def _by_the_table(evaluation: Evaluation) -> Html | None:
    """The card of regret and exploitability, None where neither was asked for."""
    parts = [
        *([] if evaluation.regret is None else _regret(evaluation.regret)),
        *([] if evaluation.exploitability is None else _exploitability(evaluation.exploitability)),
    ]
    return card("Against perfect play", *parts) if parts else None


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
    picture = svg(mistake.position, size=BOARD_SIZE, last_move=changed_sites(mistake.position, after))
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
    return card("A game", *game(evaluation.ruleset, match, record))


# -- notes -------------------------------------------------------------------------------------------------------


def _notes(evaluation: Evaluation, facts: Mapping[str, Any]) -> Html:
    entries = {
        "Matches": f"{evaluation.games} games each, seed {evaluation.seed}, openings of {evaluation.opening_plies} "
        "random moves, each played twice with sides swapped and the same dice",
        "Intervals": "95 %. Score (win 1, draw ½): Bayesian bootstrap over pairs of games. Share won: Wilson",
    }
    return card("How this was measured", how_it_was_made(evaluation.ruleset, entries, facts))
