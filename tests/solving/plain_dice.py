"""A tiny solver in plain Python over the reference rules: every position by its text, no mirror, no numbering.

Values are natural's. Value iteration from below and from above at once gives brackets that hold the true value.
"""

import importlib
from collections.abc import Iterable
from typing import Any

Step = tuple[bool, list[tuple[float, list[float | str]]]]
"""Whether natural decides, and for each throw its probability and what the moves lead to: a payoff or a text."""


def expand(game: str, options: Any, texts: Iterable[str]) -> dict[str, Step]:
    """One step from every position that can be reached from ``texts``, in all of which a throw is due."""
    reference = importlib.import_module(f"tests.reference.{game}").Game
    steps: dict[str, Step] = {}
    waiting = list(texts)
    while waiting:
        text = waiting.pop()
        if text in steps:
            continue
        position = reference.from_text(options, text)
        natural = position.seat() == 0 if callable(getattr(position, "seat", None)) else position.to_move == 0
        throws = []
        for value, probability in position.chance_outcomes():
            thrown = position.copy()
            thrown.apply_chance(value)
            throws.append((probability, _after(thrown)))
        steps[text] = natural, throws
        waiting += [result for _, results in throws for result in results if isinstance(result, str)]
    return steps


def _after(thrown: Any) -> list[float | str]:
    """What a position after the throw leads to."""
    moves = thrown.legal_moves()
    if not moves:  # the throw was void
        return [thrown.text()]
    results: list[float | str] = []
    for move in moves:
        played = thrown.copy()
        played.push(move)
        results.append({0: 1.0, 1: -1.0}[played.winner] if played.is_over else played.text())
    return results


def brackets(steps: dict[str, Step], gap: float) -> dict[str, tuple[float, float]]:
    """Natural's value of every position between two numbers that are at most ``gap`` apart."""
    low, high = dict.fromkeys(steps, -1.0), dict.fromkeys(steps, 1.0)
    while max(high[text] - low[text] for text in steps) > gap:
        for text, (natural, throws) in steps.items():
            for bound in (low, high):
                bound[text] = _mean(natural, throws, bound)
    return {text: (low[text], high[text]) for text in steps}


def _mean(natural: bool, throws: list[tuple[float, list[float | str]]], values: dict[str, float]) -> float:
    best = max if natural else min
    return sum(
        probability * best(values[result] if isinstance(result, str) else result for result in results)
        for probability, results in throws
    )
