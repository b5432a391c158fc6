"""Rebuilds a position text from an observation, and only from it (and the rules): what the encoder must not lose."""

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradgames_env.encoding import PLANE_INDEX, PLANES
from tradgames_env.rules.ruleset import Ruleset

Sites = list[int]


class Decoded:
    """The integers of an observation: ``site(name)`` a list over sites in the observer's frame, ``scalar(name)``."""

    def __init__(self, ruleset: Ruleset, observation: NDArray[np.float32]) -> None:
        self.scales = ruleset.rules.feature_scales(ruleset.options)
        self.cells = ruleset.layout.cells
        self.observation = observation

    def site(self, name: str) -> Sites:
        plane = self.observation[PLANE_INDEX[name]] * self.scales.get(name, 0.0)
        return [round(float(plane[cell])) for cell in self.cells]

    def scalar(self, name: str) -> int:
        plane = self.observation[PLANE_INDEX[name]]
        assert (plane == plane.flat[0]).all(), name
        value = float(plane.flat[0])
        if name.startswith("throw_"):
            return round(value / (1.0 - value))
        return round(value * self.scales.get(name, 0.0))

    @property
    def colour(self) -> int:
        return 0 if self.scalar("natural") else 1

    def by_colour(self, own: Any, enemy: Any) -> tuple[Any, Any]:
        """(natural's, black's) of a pair given as (own, enemy)."""
        return (own, enemy) if self.colour == 0 else (enemy, own)

    def scalars_by_colour(self, name: str) -> tuple[int, int]:
        pair: tuple[int, int] = self.by_colour(self.scalar(f"own_{name}"), self.scalar(f"enemy_{name}"))
        return pair

    def sites_by_colour(self, name: str) -> tuple[Sites, Sites]:
        """Turned by 180 degrees into natural's frame where the observer is black."""
        own, enemy = self.site(f"own{name}"), self.site(f"enemy{name}")
        if self.colour == 1:
            own, enemy = own[::-1], enemy[::-1]
        pair: tuple[Sites, Sites] = self.by_colour(own, enemy)
        return pair

    @property
    def side(self) -> str:
        return "ox"[self.colour if self.scalar("my_turn") else 1 - self.colour]

    def hand(self) -> list[int]:
        return [value for value in (5, 4, 3, 2, 1) for _ in range(self.scalar(f"throw_{value}"))]


def board_rows(letters: list[str], rows: int, cols: int) -> str:
    """Rank-major letters ("" for empty) as the rows of a position text, highest rank first."""
    lines = []
    for rank in reversed(range(rows)):
        line = letters[rank * cols : (rank + 1) * cols]
        runs = [(bool(k), list(g)) for k, g in itertools.groupby(line, key=bool)]
        lines.append("".join("".join(group) if filled else str(len(group)) for filled, group in runs))
    return "/".join(lines)


def petteia(ruleset: Ruleset, seen: Decoded) -> str:
    options = ruleset.options
    natural, black = seen.sites_by_colour("")
    leaders = seen.sites_by_colour("_mark")
    letters = ["o" if n else "x" if b else "" for n, b in zip(natural, black, strict=True)]
    letters = [c.upper() if n or b else c for c, n, b in zip(letters, *leaders, strict=True)]
    die = str(seen.scalar("die")) if options.die_limit and seen.scalar("die") else "-"
    return f"{board_rows(letters, options.rows, options.cols)} {seen.side} {seen.scalar('quiet')} {die}"


def yote(ruleset: Ruleset, seen: Decoded) -> str:
    options = ruleset.options
    natural, black = seen.sites_by_colour("")
    letters = ["o" if n else "x" if b else "" for n, b in zip(natural, black, strict=True)]
    starts, ends = seen.sites_by_colour("_ban_from"), seen.sites_by_colour("_ban_to")
    names = ruleset.layout.names
    bans = [
        names[start.index(1)] + names[end.index(1)] if 1 in start else "-"
        for start, end in zip(starts, ends, strict=True)
    ]
    reserves = seen.scalars_by_colour("reserve")
    bonus = "bonus" if seen.scalar("bonus") else "-"
    board = board_rows(letters, options.rows, options.cols)
    return f"{board} {seen.side} {reserves[0]} {reserves[1]} {seen.scalar('quiet')} {bans[0]} {bans[1]} {bonus}"


def puluc(ruleset: Ruleset, seen: Decoded) -> str:
    """Stacks are written with the prisoners first: an observation does not show their order, which never matters."""
    natural, black = seen.sites_by_colour("_count")
    owners = seen.sites_by_colour("")
    squares = []
    for square in range(1, ruleset.options.length - 1):
        below, above = ("x" * black[square], "o" * natural[square])
        if owners[1][square]:
            below, above = above, below
        squares.append(below + above or "-")
    houses, removed = seen.scalars_by_colour("reserve"), seen.scalars_by_colour("captures")
    hand = seen.hand()
    throw = str(hand[0]) if hand else "-"
    return f"{'/'.join(squares)} {houses[0]} {houses[1]} {removed[0]} {removed[1]} {seen.side} {throw}"


WAY_MARKS = ("", "<5", "<10", "<28", "<28.10", "<1")


def yut_nori(ruleset: Ruleset, seen: Decoded) -> str:
    frames = [seen.site(f"{side}_{what}") for what in ("count", "mark") for side in ("own", "enemy")]
    counts, marks = seen.by_colour(*frames[:2]), seen.by_colour(*frames[2:])
    waiting, home = seen.scalars_by_colour("reserve"), seen.scalars_by_colour("captures")
    sides = []
    for colour in (0, 1):
        places = [
            f"{station}{WAY_MARKS[mark]}:{count}"
            for station, (count, mark) in enumerate(zip(counts[colour], marks[colour], strict=True))
            if count
        ]
        places += [f"w:{waiting[colour]}"] * bool(waiting[colour]) + [f"h:{home[colour]}"] * bool(home[colour])
        sides.append(",".join(places))
    hand = [str(value) for value in seen.hand()] + ["b"] * seen.scalar("throw_back")
    return f"{sides[0]} {sides[1]} {seen.side} {'+'.join(hand) or '-'}"


def normal_form(ruleset: Ruleset, text: str) -> str:
    """A position text with what no observation shows made uniform.

    That is the order inside Puluc stacks below the top, and Petteia's quiet clock where it is switched off.
    """
    if ruleset.game == "petteia" and ruleset.options.quiet_limit == 0:
        board, side, _, die = text.split(" ")
        return f"{board} {side} 0 {die}"
    if ruleset.game != "puluc":
        return text
    squares, rest = text.split(" ", 1)
    stacks = [s if s == "-" else "".join(sorted(s[:-1], key=lambda c: c == s[-1])) + s[-1] for s in squares.split("/")]
    return f"{'/'.join(stacks)} {rest}"


def used_planes(ruleset: Ruleset) -> set[str]:
    return set(ruleset.rules.feature_scales(ruleset.options)) | {"playable"}


def unused_planes(ruleset: Ruleset) -> set[str]:
    return {plane.name for plane in PLANES} - used_planes(ruleset)


DECODERS = {"petteia": petteia, "puluc": puluc, "yote": yote, "yut_nori": yut_nori}
