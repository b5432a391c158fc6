"""The page of an arena: the ladder, who beat whom, strength against time to think, and how games ended."""

import dataclasses
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tradgames_env.rendering import svg
from training.arena import ArenaResult, Standing, ladder_cells, test_text
from training.evaluate import TOO_REPETITIVE, percent_with_interval
from training.markup import Html, data_uri, element
from training.match import GameRecord, MatchResult, replay
from training.page import (
    ACCENT,
    BOARD_SIZE,
    FAINT,
    GRID,
    INK,
    as_svg,
    card,
    game,
    game_text,
    how_it_was_made,
    new_plot,
    page,
    plot_figure,
    ratings_plot,
    shortened,
    write_page,
)
from training.ratings import Rating

MOST_SAMPLES = 6
"""Decisive games of which the end is shown."""

_FASTEST = 1e-6
# Whose budget is a depth.
_DEEP = "alphabeta"
# The share of points that colours a cell of the cross table fully lies this far from a half.
_FULL_COLOUR = 0.5
# Of the height of a plot, what a name takes.
_CROWDED = 0.08


def write_arena_page(result: ArenaResult, facts: Mapping[str, Any], folder: pathlib.Path) -> pathlib.Path:
    """Write ``index.html`` and return its path.

    Args:
        result: with at least one match.
        facts: from ``provenance``.
        folder: made if missing.

    Raises:
        OSError: the page cannot be written.
    """
    return write_page(build_arena_page(result, facts), folder)


def build_arena_page(result: ArenaResult, facts: Mapping[str, Any]) -> str:
    """The page as text; arguments as ``write_arena_page``."""
    ruleset = result.plan.ruleset
    return page(
        f"Arena: {ruleset.rules.title}",
        element("p", _lead(result), class_="lead"),
        _ladder(result),
        _cross_table(result),
        _compute(result),
        _matches(result),
        *_games(result),
        _notes(result, facts),
    )


def _lead(result: ArenaResult) -> str:
    label = result.plan.ruleset.label.removeprefix(f"{result.plan.ruleset.game}/")
    text = (
        f"Variant {label}. {len(result.plan.players)} players, {result.games:,} games, every opening played from both "
        "sides."
    )
    return f"{text} There is more to play." if result.stopped else text


# -- the ladder ------------------------------------------------------------------------------------------------------


def _ladder(result: ArenaResult) -> Html:
    headings = ("player", "Elo", "95 % interval", "games", "score", "drawn", "ms a move")
    rows = [element("tr", *(element("th", heading) for heading in headings))]
    for standing in result.standings:
        name, *cells = ladder_cells(standing)
        rows.append(element("tr", element("td", name, class_="name"), *(element("td", cell) for cell in cells)))
    table = element("div", element("table", *rows), class_="scroll")
    rated = [row.rating for row in result.standings if row.rating.elo is not None]
    if len(rated) < 2:
        return card("Ladder", table)
    caption = (
        f"Elo with 95 % intervals, {result.anchor} = 0: Bradley–Terry fit to all results, draws as half a win, two "
        "imagined draws between players who met; Bayesian bootstrap over pairs of games."
    )
    return card("Ladder", plot_figure(ratings_plot(rated), "Ratings, as in the table below", caption), table)


def _cross_table(result: ArenaResult) -> Html:
    names = [row.rating.name for row in result.standings]
    numbers = {name: number for number, name in enumerate(names, start=1)}
    rows = [element("tr", element("th", "player"), *(element("th", number) for number in numbers.values()))]
    by_players = {frozenset((match.agent, match.opponent)): match for match in result.matches}
    for name in names:
        cells = (_cross_cell(name, by_players.get(frozenset((name, other)))) for other in names)
        rows.append(element("tr", element("td", f"{numbers[name]}. {name}", class_="name"), *cells))
    note = "Points a game in % of the player on the left against the one whose number stands above; ½ for a draw."
    table = element("div", element("table", *rows, class_="cross"), class_="scroll")
    return card("Who beat whom", table, element("p", note, class_="note", style="margin-top: 12px"))


def _cross_cell(name: str, match: MatchResult | None) -> Html:
    if match is None:
        return element("td", "")
    won, lost = (match.wins, match.losses) if name == match.agent else (match.losses, match.wins)
    score = match.score if name == match.agent else 1.0 - match.score
    share = 100 * abs(score - 0.5) / _FULL_COLOUR * 0.55
    colour = "var(--won)" if score >= 0.5 else "var(--lost)"
    style = f"background: color-mix(in srgb, {colour} {share:.0f}%, transparent)"
    return element("td", f"{100 * score:.0f}", style=style, title=f"won {won}, drawn {match.draws}, lost {lost}")


def _compute(result: ArenaResult) -> Html | None:
    points = by_time(result.standings)
    if len(points) < 2:
        return None
    caption = (
        "Rating against the wall time of a move, on a logarithmic axis; lines join a player at several budgets. Games "
        "that run side by side share the time of agents who answer many positions at once."
    )
    words = "Rating against seconds a move, both as in the table above"
    picture = strength_plot(points, "seconds a move")
    return card("Strength against time to think", plot_figure(picture, words, caption))


@dataclasses.dataclass(frozen=True)
class Point:
    """A rated player in a plot.

    Attributes:
        label: what is written beside it.
        across: its place on the logarithmic axis.
        rating: with an interval.
        family: points of the same one are joined, from left to right.
    """

    label: str
    across: float
    rating: Rating
    family: str

    @property
    def elo(self) -> float:
        """Its place upwards."""
        assert self.rating.elo is not None
        return self.rating.elo


def by_time(standings: Sequence[Standing]) -> list[Point]:
    """Rated players by seconds a move; those that differ in their budget alone are a family."""
    return [
        Point(row.rating.name, max(row.seconds_per_move, _FASTEST), row.rating, _name_and_budget(row)[0])
        for row in standings
        if row.rating.elo is not None
    ]


def by_simulations(standings: Sequence[Standing]) -> list[Point]:
    """Rated players with a budget of simulations, by that."""
    rows = [(row, *_name_and_budget(row)) for row in standings if row.rating.elo is not None]
    return [
        Point(row.rating.name, budget, row.rating, name)
        for row, name, budget in rows
        if budget is not None and name != _DEEP
    ]


def _name_and_budget(row: Standing) -> tuple[str, int | None]:
    name, _, budget = row.rating.name.rpartition(":")
    return (name, int(budget)) if budget.isdecimal() else (row.rating.name, None)


def strength_plot(points: Sequence[Point], across: str) -> str:
    """An SVG document: Elo with intervals over what ``across`` names, on a logarithmic axis."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    figure, axes = new_plot(9.6, 4.6)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda place, _: f"{place:,.10g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    for family in dict.fromkeys(point.family for point in points):
        line = sorted((point.across, point.elo) for point in points if point.family == family)
        axes.plot(*zip(*line, strict=True), color=ACCENT, linewidth=1.5, alpha=0.4)
    for point in points:
        assert point.rating.low is not None
        assert point.rating.high is not None
        axes.plot([point.across] * 2, [point.rating.low, point.rating.high], color=ACCENT, linewidth=3, alpha=0.3)
        axes.plot([point.across], [point.elo], "o", color=ACCENT, markersize=8)
        axes.annotate(
            shortened(point.label, 28), (point.across, point.elo), (8, -14 if _is_crowded(point, points) else 6),
            textcoords="offset points", fontsize=9.5, color=INK, parse_math=False,
        )  # fmt: skip
    axes.margins(x=0.16, y=0.1)
    axes.set_xlabel(across, fontsize=10, color=FAINT)
    axes.set_ylabel("Elo", fontsize=10, color=FAINT)
    axes.grid(visible=True, color=GRID, linewidth=0.8)
    return as_svg(figure, axes)


def _is_crowded(point: Point, points: Sequence[Point]) -> bool:
    """Whether the name of a player just above would be in the way of this one's."""
    height = max(other.elo for other in points) - min(other.elo for other in points)
    beside = [other for other in points if other is not point and 0.2 < other.across / point.across < 5.0]
    return any(0.0 <= other.elo - point.elo < _CROWDED * height for other in beside)


# -- matches and games -----------------------------------------------------------------------------------------------


def _matches(result: ArenaResult) -> Html:
    headings = ("match", "won", "drawn", "lost", "score, 95 % interval", "moves a game", "repeated games")
    rows = [element("tr", *(element("th", heading) for heading in headings))]
    for match in result.matches:
        cells = (
            match.wins, match.draws, match.losses, percent_with_interval(match.score, match.score_interval),
            f"{match.mean_length:.0f}", f"{100 * match.repeated:.1f} %",
        )  # fmt: skip
        name = element("td", f"{match.agent} – {match.opponent}", class_="name")
        rows.append(element("tr", name, *(element("td", cell) for cell in cells)))
    table = element("div", element("table", *rows), class_="scroll")
    warnings = [element("p", text, class_="warn", style="margin-top: 12px") for text in _warnings(result)]
    return card("Matches", table, *warnings, _tests(result))


def _warnings(result: ArenaResult) -> list[str]:
    warnings = []
    for match in result.matches:
        name = f"{match.agent} – {match.opponent}"
        if match.truncated:
            warnings.append(f"{name}: {match.truncated} stopped games count as draws.")
        if match.repeated > TOO_REPETITIVE:
            warnings.append(
                f"{name}: {100 * match.repeated:.0f} % of the games repeat another, so the intervals are too narrow."
            )
    return warnings


def _tests(result: ArenaResult) -> Html | None:
    test = result.plan.test
    if test is None:
        return None
    intro = (
        f"Sequential test of {test.elo0:g} against {test.elo1:g} Elo for the first player of each match, errors up to "
        f"{test.alpha:g} and {test.beta:g}. A match that ends with its test favours what it found, a little."
    )
    items = (
        element("li", f"{match.agent} – {match.opponent}: {test_text(test, match, verdict)}")
        for match, verdict in zip(result.matches, result.verdicts, strict=True)
    )
    return element("details", element("summary", "Sequential tests"), element("p", intro), element("ul", *items))


def _games(result: ArenaResult) -> Iterator[Html]:
    samples = sample_games(result)
    if not samples:
        return
    pictures = (_ending(result, match, record) for match, record in samples)
    yield card("How games ended", element("div", *pictures, class_="gallery"))
    yield card("A game", *game(result.plan.ruleset, *samples[0]))


def sample_games(result: ArenaResult) -> list[tuple[MatchResult, GameRecord]]:
    """The first decisive game of each match, those between the best players first."""
    places = {row.rating.name: place for place, row in enumerate(result.standings)}
    matches = sorted(result.matches, key=lambda match: places.get(match.agent, 0) + places.get(match.opponent, 0))
    firsts = ((match, next((r for r in match.records if r.winner is not None), None)) for match in matches)
    return [(match, record) for match, record in firsts if record is not None][:MOST_SAMPLES]


def _ending(result: ArenaResult, match: MatchResult, record: GameRecord) -> Html:
    *_, last = replay(result.plan.ruleset, record)
    picture = svg(last.position, size=BOARD_SIZE)
    image = element("img", src=data_uri(picture, "image/svg+xml"), alt=last.position.text(), loading="lazy")
    return element("figure", image, element("figcaption", game_text(match, record)))


def _notes(result: ArenaResult, facts: Mapping[str, Any]) -> Html:
    plan = result.plan
    balanced = (
        "" if plan.reference is None else f" that {plan.reference} holds for balanced (value at most {plan.limit:g})"
    )
    fewest, most = plan.plies
    plies = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    entries = {
        "Matches": f"{'up to ' if plan.test is not None else ''}{plan.games} games of every two players, seed "
        f"{plan.seed}, openings of {plies} random moves{balanced}, each played twice with sides swapped and the same "
        "dice, the same openings in every match",
        "Weights": ", ".join(f"{name} {checksum[:12]}" for name, checksum in plan.weights.items()) or "none",
    }
    return card("How this was measured", how_it_was_made(plan.ruleset, entries, facts))
