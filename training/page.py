"""What every page of results is made of: the frame, cards, plots, a game to play through, how it was measured."""

import io
import pathlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tradgames_env.position import Position
from tradgames_env.rendering import svg
from tradgames_env.rules.ruleset import Ruleset
from training.evaluate import elo_text
from training.markup import Html, data_uri, element
from training.match import SIDES, Frame, GameRecord, MatchResult, replay
from training.ratings import Rating
from training.report_style import CSS, SCRIPT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAGE_FILE = "index.html"

MOST_POSITIONS = 400
"""A longer game is shown up to this many positions."""

BOARD_SIZE = 480
"""Of pictures of positions, in pixels."""

ACCENT, INK, FAINT, GRID = "#0b62a8", "#2a241e", "#6b5d4d", "#e0d5c1"
"""Colours of plots."""


def page(title: str, *children: object) -> str:
    """A whole document with everything in it, readable without scripts."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", Html(CSS)),
    )
    main = element("main", element("h1", title), *children)
    document = element("html", head, element("body", main, element("script", Html(SCRIPT))), lang="en")
    return f"<!DOCTYPE html>\n{document}\n"


def write_page(text: str, folder: pathlib.Path) -> pathlib.Path:
    """Write ``index.html`` and return its path.

    Args:
        text: the document.
        folder: made if missing.

    Raises:
        OSError: it cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / PAGE_FILE
    path.write_text(text, encoding="utf-8")
    return path


def card(heading: str, *children: object) -> Html:
    """A part of the page under a heading."""
    return element("section", element("h2", heading), *children, class_="card")


def how_it_was_made(ruleset: Ruleset, entries: Mapping[str, object], facts: Mapping[str, Any]) -> Html:
    """A list of what goes with every result.

    Args:
        ruleset: the game and its options.
        entries: what is special to this page, by name.
        facts: from ``provenance``.
    """
    options = ", ".join(f"{name} = {value}" for name, value in ruleset.overrides.items())
    everything = {
        "Command": element("code", facts["command"]),
        "Game": f"{ruleset.rules.title}, variant {ruleset.variant}{', ' if options else ''}{options}, "
        f"rules version {ruleset.rules.version}",
        **entries,
        "Machine": "{processor}, {cores} cores, {memory_gib} GiB, {system}".format(**facts["machine"]),
        "Date": facts["date"],
        "Versions": ", ".join(f"{name} {version}" for name, version in facts["versions"].items()),
    }
    items = [part for name, value in everything.items() for part in (element("dt", name), element("dd", value))]
    return element("dl", *items)


# -- plots -----------------------------------------------------------------------------------------------------------


def ratings_plot(ratings: Sequence[Rating]) -> str:
    """An SVG document: a dot and its interval for each rated player, the best on top."""
    figure, axes = new_plot(9.6, 0.9 + 0.5 * len(ratings))
    places = range(len(ratings) - 1, -1, -1)
    axes.axvline(0, color=GRID, linewidth=2, zorder=0)
    for place, rating in zip(places, ratings, strict=True):
        assert rating.elo is not None
        assert rating.low is not None
        assert rating.high is not None
        axes.plot([rating.low, rating.high], [place, place], color=ACCENT, linewidth=4, alpha=0.35)
        axes.plot([rating.elo], [place], "o", color=ACCENT, markersize=9)
        axes.annotate(
            elo_text(rating.elo), (rating.elo, place), (0, 9), textcoords="offset points",
            ha="center", fontsize=10, color=INK,
        )  # fmt: skip
    names = [shortened(rating.name) for rating in ratings]
    axes.set_yticks(list(places), names, fontsize=11, parse_math=False)
    axes.set_ylim(-0.6, len(ratings) - 0.35)
    axes.set_xlabel("Elo", fontsize=10, color=FAINT)
    axes.margins(x=0.06)
    axes.grid(visible=True, axis="x", color=GRID, linewidth=0.8)
    return as_svg(figure, axes)


def new_plot(width: float, height: float) -> "tuple[Figure, Axes]":
    """An empty plot of this size in inches."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasSVG(figure)
    return figure, figure.subplots()


def as_svg(figure: "Figure", axes: "Axes") -> str:
    """The plot in the manner of the page, as an SVG document."""
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelcolor=FAINT)
    axes.spines[:].set_visible(False)
    figure.patch.set_alpha(0.0)
    axes.patch.set_alpha(0.0)
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def plot_figure(picture: str, words: str, caption: str) -> Html:
    """A plot with its caption; ``words`` stand for it where it cannot be seen."""
    image = element("img", src=data_uri(picture, "image/svg+xml"), alt=words)
    return element("figure", element("div", image, class_="scroll"), element("figcaption", caption))


def shortened(name: str, most: int = 40) -> str:
    """The end of a long name."""
    return name if len(name) <= most else f"…{name[1 - most :]}"


# -- a game ----------------------------------------------------------------------------------------------------------


def game(ruleset: Ruleset, match: MatchResult, record: GameRecord) -> tuple[Html, Html]:
    """Who played and how it ended, and the game to play through."""
    frames = list(replay(ruleset, record))
    shown = frames[:MOST_POSITIONS]
    text = game_text(match, record)
    if record.opening:
        text += f" The first {record.opening} moves, in italics, are the random opening."
    if len(shown) < len(frames):
        text += f" Only the first {len(shown) - 1} moves are shown."
    boards = [_frame(number, shown[number], shown[number - 1] if number else None) for number in range(len(shown))]
    moves = element("ol", *(_move_item(number, frame) for number, frame in enumerate(shown)))
    whole = element("div", *boards, _controls(), element("div", moves, class_="moves"), class_="replay")
    return element("p", text), whole


def game_text(match: MatchResult, record: GameRecord) -> str:
    """Who played and how it ended."""
    players = (match.agent, match.opponent) if record.agent_side == 0 else (match.opponent, match.agent)
    ending = "drawn" if record.winner is None else f"{players[record.winner]} won as {SIDES[record.winner]}"
    return f"{players[0]} (natural) – {players[1]} (black): {ending}, {record.reason}, {len(record.actions)} moves."


def _controls() -> Html:
    slider = element("input", type="range", min=0, value=0, aria_label="Move shown")
    first, back = _button("first", "«", "To the start"), _button("back", "‹ Back", "One move back")
    forth, last = _button("next", "Next ›", "One move on"), _button("last", "»", "To the end")
    return element("div", first, back, slider, forth, last, class_="controls")


def _button(go: str, label: str, meaning: str) -> Html:
    return element("button", label, type="button", data_go=go, title=meaning, aria_label=meaning)


def _frame(number: int, frame: Frame, before: Frame | None) -> Html:
    touched = None if before is None else touched_sites(before.position, frame.position)
    picture = svg(frame.position, size=BOARD_SIZE, last_move=touched)
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
