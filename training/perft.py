"""Leaf counts move by move, to find the move under which two implementations of a game differ."""

from tradgames_env.position import Position, count_positions
from tradgames_env.rules.contract import CHANCE


def split_counts(position: Position, depth: int) -> dict[str, int]:
    """How many of the positions ``depth`` moves ahead lie behind each first move; the values sum to the perft count.

    Args:
        position: with ``chance="explicit"``; it is left unchanged. Where a throw is due, entries begin with it:
            ``"3: enter -> 3"``. A throw that calls for another one stands alone: ``"0:"``.
        depth: at least 1.

    Raises:
        ValueError: ``depth`` is below 1.
    """
    if depth < 1:
        raise ValueError(f"depth must be 1 or more to be split by first moves, not {depth}")
    thrown = _kind_due(position)
    if thrown == 0:
        return _by_move(position, depth, "")
    counts: dict[str, int] = {}
    for value, _ in position.chance_outcomes():
        position.apply_chance(value)
        due = _kind_due(position)
        if due != 0:
            # Perft counts a throw that may repeat itself without end as a move.
            repeated = due == thrown and position.ruleset.chance_kinds[due - 1].repeats
            counts[f"{value}:"] = count_positions(position, depth - 1 if repeated else depth)
        else:
            counts |= _by_move(position, depth, f"{value}: ")
        position.pop()
    return counts


def _by_move(position: Position, depth: int, prefix: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for move in position.legal_moves():
        position.push(move)
        counts[prefix + move] = count_positions(position, depth - 1)
        position.pop()
    return counts


def _kind_due(position: Position) -> int:
    return int(position.rows[0][CHANCE])
