"""The pictures of ``docs/perfect_play.md``: bars, charts and positions."""

import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture
from matplotlib.patches import Patch
from publish_facts import by_material, largest, percent, picture_name

from tradgames_env import rendering
from tradgames_env.position import Position
from tradgames_env.rules.ruleset import load_ruleset
from training.bench_plots import COLOURS, FAINT, GRID, INK, save

BLUE, ORANGE, GREEN = COLOURS[:3]
PALE = "#d9cfbc"
_THROWS = "12345"
_KIND_COLOURS = {"enter": BLUE, "advance": ORANGE, "pass": PALE}
_KIND_WORDS = {"enter": "enter a counter", "advance": "advance the unit", "pass": "pass"}

Facts = Mapping[str, Any]


def draw(facts: Facts, titles: Mapping[str, str], folder: pathlib.Path) -> list[pathlib.Path]:
    """Draw every picture that the facts give, and return the files.

    Args:
        facts: what ``benchmarks/facts.py`` writes.
        titles: of the tables, by name.
        folder: made if missing; gets ``facts_*.svg``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    painters: dict[str, Callable[[], Picture | None]] = {
        "skill": lambda: _skill(facts["matches"], titles),
        "throws": lambda: _throws(facts["games"], titles),
        "opening": lambda: _opening(largest(facts["openings"], "puluc")),
        "passing": lambda: _passing(largest(facts["games"], "puluc")),
        "short_ways": lambda: _short_ways(largest(facts["games"], "yut_nori")),
        "endings": lambda: _endings(facts["endings"], titles),
    }
    drawn = save(painters, folder, "facts_")
    for name, shown in boards(facts).items():
        path = folder / f"facts_{name}.svg"
        path.write_text(board(shown), encoding="utf-8")
        drawn.append(path)
    return drawn


# -- positions -------------------------------------------------------------------------------------------------------


def boards(facts: Facts) -> dict[str, Facts]:
    """The positions that the page shows, by the name of their picture."""
    shown: dict[str, Facts] = {}
    puluc, yut_nori = largest(facts["games"], "puluc"), largest(facts["games"], "yut_nori")
    if puluc is not None:
        shown |= {f"pass_{place}": found for place, found in enumerate(puluc[1]["passing"]["examples"], 1)}
    if yut_nori is not None:
        forks = yut_nori[1]["short_ways"]["forks"]
        shown |= {f"rim_{station}": fork["examples"][0] for station, fork in forks.items() if fork["examples"]}
    for name, fact in facts["endings"].items():
        shown[picture_name(name)] = fact["longest"]
    return shown


def board(shown: Facts) -> str:
    """A position as SVG; where it has moves to compare, what each wins stands where it leads."""
    ruleset = load_ruleset(shown["game"], shown["variant"], **shown["overrides"])
    position = Position.from_ruleset(ruleset, shown["position"], chance="explicit")
    labels: dict[int, str] = {}
    for move, wins in list(shown.get("moves", {}).items())[:3]:
        after = position.copy()
        after.push(move)
        labels |= dict.fromkeys(_landings(position, after), f"{wins:.0%}")
    return rendering.svg(position, targets=tuple(labels), annotations=labels)


def _landings(before: Position, after: Position) -> list[int]:
    """Sites where the mover stands after his move and something has changed."""
    own = "ox"[before.to_move]
    pieces = after.ruleset.rules.site_pieces(after.options, after.rows[0])
    return [site for site in rendering.changed_sites(before, after) if pieces[site].endswith(own)]


# -- bars and charts -----------------------------------------------------------------------------------------------


def _skill(matches: Facts, titles: Mapping[str, str]) -> Picture | None:
    """Scores of perfect play against random and greedy play."""
    if not matches:
        return None
    picture = Picture(figsize=(7.6, 0.55 * len(matches) + 1.4), layout="constrained")
    _title(picture, "What perfect play scores, from the start, sides swapped")
    axes = picture.add_subplot()
    for place, fact in enumerate(matches.values()):
        for shift, (name, colour) in zip((-0.17, 0.17), (("random", BLUE), ("greedy", ORANGE)), strict=True):
            result = fact["against"][name]
            low, high = result["interval"]
            axes.barh(place + shift, 100 * result["score"], height=0.32, color=colour, label="" if place else name)
            axes.plot([100 * low, 100 * high], [place + shift] * 2, color=INK, linewidth=1.2)
            axes.text(100 * high + 1, place + shift, percent(result["score"], 1), va="center", fontsize=9)
    axes.axvline(50, color=FAINT, linewidth=1, linestyle=(0, (4, 3)))
    _finish_rows(axes, [titles[name] for name in matches])
    axes.set_xlim(0, 112)
    axes.set_xlabel("% of the points, with 95 % intervals")
    _legend(picture, {"against random": BLUE, "against greedy": ORANGE})
    return picture


def _title(picture: Picture, text: str) -> None:
    picture.suptitle(text, x=0.01, ha="left", weight="bold", fontsize=13)


def _legend(picture: Picture, colours: Mapping[str, str]) -> None:
    """Names of colours, below everything."""
    patches = [Patch(color=colour) for colour in colours.values()]
    picture.legend(patches, list(colours), loc="outside lower left", ncols=len(colours), frameon=False)


def _finish_rows(axes: Axes, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(visible=True, axis="x", linewidth=0.8)
    axes.set_axisbelow(True)


def _throws(games: Facts, titles: Mapping[str, str]) -> Picture | None:
    """What each throw is worth, in the largest game of each kind."""
    names = [found[-1] for game in ("puluc", "yut_nori") if (found := [n for n in games if n.startswith(f"{game}/")])]
    if not names:
        return None
    picture = Picture(figsize=(7.6, 3.6), layout="constrained")
    for place, name in enumerate(names, 1):
        axes = picture.add_subplot(1, len(names), place)
        axes.set_title(titles[name], pad=12)
        gain, start = games[name]["throws"]["gain"], games[name]["start_throws"]
        before = games[name]["expected_wins"]
        at = range(len(_THROWS))
        axes.bar([x - 0.2 for x in at], [100 * (start[t]["wins"] - before) for t in _THROWS], 0.38, color=PALE)
        axes.bar([x + 0.2 for x in at], [100 * gain[t] for t in _THROWS], 0.38, color=BLUE)
        axes.axhline(0, color=INK, linewidth=1)
        axes.set_xticks(list(at), list(_THROWS))
        axes.set_xlabel("throw")
        axes.set_ylabel("points of winning probability" if place == 1 else "")
        axes.grid(visible=True, axis="y", linewidth=0.8)
        axes.set_axisbelow(True)
    _legend(picture, {"first throw of the game": PALE, "all throws of perfect games": BLUE})
    return picture


def _opening(found: tuple[str, Facts] | None) -> Picture | None:
    """Natural's second turn in Puluc: a panel for his first throw, a row for black's, a column for his second."""
    if found is None:
        return None
    fact = found[1]
    picture = Picture(figsize=(9.6, 2.9), layout="constrained")
    _title(picture, "Puluc: the second turn of the side that began")
    for first in _THROWS:
        axes = picture.add_subplot(1, 5, int(first))
        axes.set_title(f"first throw {first}", fontsize=10.5, weight="normal", loc="center")
        for reply in _THROWS:
            for second in _THROWS:
                _opening_cell(axes, fact["natural"][f"{first} {reply} {second}"], int(second), int(reply))
        axes.set_xlim(0.5, 5.5)
        axes.set_ylim(5.5, 0.5)
        axes.set_aspect("equal")
        axes.set_xticks(range(1, 6))
        axes.set_yticks(range(1, 6))
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        axes.set_xlabel("second throw")
        axes.set_ylabel("black's throw" if first == "1" else "")
    _legend(picture, {_KIND_WORDS[kind]: colour for kind, colour in _KIND_COLOURS.items()})
    return picture


def _opening_cell(axes: Axes, found: Facts, column: int, row: int) -> None:
    """One square: colour for the best move, the points by which it is better than the next, x for a capture."""
    kind = found["kind"].partition(" ")[0]
    wins = list(found["moves"].values())
    axes.fill([column - 0.47, column + 0.47, column + 0.47, column - 0.47],
              [row - 0.47, row - 0.47, row + 0.47, row + 0.47], color=_KIND_COLOURS[kind])  # fmt: skip
    text = f"{100 * (wins[0] - wins[1]):.1f}" if len(wins) > 1 else ""
    mark = "x " if "capture" in found["kind"] else ""
    axes.text(column, row, mark + text, ha="center", va="center", fontsize=7,
              color=INK if kind == "pass" else "white")  # fmt: skip


def _passing(found: tuple[str, Facts] | None) -> Picture | None:
    """How much better or worse passing is than the best move, where both may be done."""
    if found is None:
        return None
    fact = found[1]
    picture = Picture(figsize=(7.6, 3.6), layout="constrained")
    axes = picture.add_subplot()
    axes.set_title("Puluc: passing where a move is there too", pad=12)
    _histogram(axes, fact["passing"]["histogram"], fact["passing"]["offered"], BLUE, ORANGE)
    axes.set_xlabel("points of winning probability that passing gains on the best move; the ends hold all beyond")
    axes.set_ylabel("% of such decisions")
    _name_sides(axes, "moving is right", "passing is right", BLUE, ORANGE)
    return picture


def _short_ways(found: tuple[str, Facts] | None) -> Picture | None:
    """How much better or worse the short way is than the rim, at each fork."""
    if found is None:
        return None
    fact = found[1]
    picture = Picture(figsize=(9.6, 3.3), layout="constrained")
    for place, (station, fork) in enumerate(fact["short_ways"]["forks"].items(), 1):
        axes = picture.add_subplot(1, 3, place)
        axes.set_title(f"{station} {fork['word']}", pad=12)
        _histogram(axes, fork["histogram"], fork["offered"], ORANGE, BLUE)
        axes.set_xlabel("points that it gains on the rim")
        axes.set_ylabel("% of the choices" if place == 1 else "")
    _legend(picture, {"the rim is right": ORANGE, "the short way is right": BLUE})
    return picture


def _histogram(axes: Axes, found: Facts, total: int, below: str, above: str) -> None:
    """Bars of a percentage point each, in one colour below 0 and another above."""
    for left, count in zip(found["edges"], found["counts"], strict=False):
        axes.bar(left + 0.5, 100 * count / total, 0.9, color=below if left < 0 else above)
    axes.axvline(0, color=INK, linewidth=1)
    axes.grid(visible=True, axis="y", linewidth=0.8)
    axes.set_axisbelow(True)


def _name_sides(axes: Axes, left: str, right: str, left_colour: str, right_colour: str) -> None:
    axes.text(0.02, 0.96, left, transform=axes.transAxes, color=left_colour, weight="bold", va="top")
    axes.text(0.98, 0.96, right, transform=axes.transAxes, color=right_colour, weight="bold", va="top", ha="right")


def _endings(endings: Facts, titles: Mapping[str, str]) -> Picture | None:
    """Shares won, drawn and lost by material, in groups of a game."""
    groups = [(titles[name], by_material(fact)) for name, fact in endings.items()]
    if not groups:
        return None
    height = sum(len(rows) + 1 for _, rows in groups)
    picture = Picture(figsize=(7.6, 0.22 * height + 1.4), layout="constrained")
    _title(picture, "Positions by pieces, for the side to move")
    axes = picture.add_subplot()
    names: list[str] = []
    for title, rows in groups:
        axes.text(0.5, len(names), title, weight="bold", va="center", fontsize=9.5)
        names.append("")
        for (own, enemy), counts in rows.items():
            _stack(axes, len(names), counts)
            names.append(f"{own} : {enemy}")
    _finish_rows(axes, names)
    axes.set_xlim(0, 100)
    axes.set_xlabel("% of the positions")
    _legend(picture, {"won": BLUE, "drawn": GRID, "lost": ORANGE})
    return picture


def _stack(axes: Axes, place: int, counts: Sequence[int]) -> None:
    """Won, drawn and lost end to end."""
    left = 0.0
    for count, colour in zip(counts, (BLUE, GRID, ORANGE), strict=True):
        width = 100 * count / sum(counts)
        axes.barh(place, width, left=left, height=0.72, color=colour)
        left += width
