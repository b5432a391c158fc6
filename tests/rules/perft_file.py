"""Perft files: ``tests/data/perft/<game>.txt``, one line a case: variant, options as name=value, depth, count.

Run as a script, it counts again with the kernels and with the reference and rewrites the files; depths are limited so
that the reference, which is slow, has seen every number that is not marked otherwise.
"""

import dataclasses
import importlib
import pathlib
import sys
from typing import Any

import tradgames_env as tg
from tradgames_env.rules.ruleset import load_ruleset

FOLDER = pathlib.Path(__file__).parent.parent / "data" / "perft"
# The reference counts about this many positions a second; deeper counts would take it too long.
REFERENCE_LIMIT = 60_000
EXTRA = {
    "petteia": (
        "box corner_capture=True",
        "fr6 leader=True",
        "simple leader=True stone_rows=2",
        "mini forced_capture=True",
    ),
    "puluc": ("box pass_rule='always'", "family throw_table='marked_plus_one'"),
    "yote": ("box return_ban='off'", "mini few_pieces_draw=2"),
    "yut_nori": ("duel backdo=True", "duel finish='pass'", "duel extra_on_yut_mo=True", "duel nak_prob=0.1"),
}


@dataclasses.dataclass(frozen=True)
class PerftLine:
    """One count: ``case`` is the variant followed by options, e.g. ``box corner_capture=True``."""

    case: str
    depth: int
    count: int

    @property
    def variant(self) -> str:
        return self.case.split(" ")[0]

    @property
    def options(self) -> dict[str, object]:
        pairs = (word.split("=") for word in self.case.split(" ")[1:])
        return {name: _literal(value) for name, value in pairs}


def _literal(text: str) -> object:
    if text in ("True", "False"):
        return text == "True"
    if text.startswith("'"):
        return text.strip("'")
    return float(text) if "." in text else int(text)


def read(game: str) -> list[PerftLine]:
    """All lines of a game's file."""
    lines = []
    for line in (FOLDER / f"{game}.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            case, depth, count = line.split("|")
            lines.append(PerftLine(case.strip(), int(depth), int(count)))
    return lines


def count_by_reference(game: str, line: PerftLine) -> int:
    """The same count by the slow reference."""
    reference = importlib.import_module(f"tests.reference.{game}")
    ruleset = load_ruleset(game, line.variant, **line.options)
    repeats = any(kind.repeats for kind in ruleset.chance_kinds)
    return _leaves(reference.Game(ruleset.options), line.depth, repeats, thrown=False)


def _leaves(game: Any, depth: int, repeats: bool, thrown: bool) -> int:
    """As ``rules.leaves.count_leaves``: where throws may repeat without limit, a throw after a throw costs a move."""
    outcomes = game.chance_outcomes()
    if outcomes and thrown and repeats:
        depth -= 1
    if depth == 0:
        return 1
    if game.is_over:
        return 0
    leaves = 0
    if outcomes:
        chooses_first_player = "?" in game.text().split(" ")
        for value, _ in outcomes:
            child = game.copy()
            child.apply_chance(value)
            leaves += _leaves(child, depth, repeats, not chooses_first_player)
        return leaves
    moves = game.legal_moves()
    if depth == 1:
        return len(moves)
    for move in moves:
        child = game.copy()
        child.push(move)
        leaves += _leaves(child, depth - 1, repeats, False)
    return leaves


def _write(game: str) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    lines = [
        f"# Positions after so many moves from the start of {game}; every outcome of a throw is a branch.",
        f"# Counts up to {REFERENCE_LIMIT:,} agree with tests/reference; larger ones are the kernels' own.",
        "# variant and options | depth | count",
    ]
    for case in (*tg.variants(game), *EXTRA[game]):
        for depth in range(1, 9):
            line = PerftLine(case, depth, 0)
            count = tg.perft(game, depth, line.variant, **line.options)
            if count > 3_000_000:
                break
            if count <= REFERENCE_LIMIT:
                assert count == count_by_reference(game, line), (game, line, count)
            lines.append(f"{case} | {depth} | {count}")
            sys.stdout.write(f"{game} {lines[-1]}\n")
    (FOLDER / f"{game}.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    for name in sys.argv[1:] or tg.games():
        _write(name)
