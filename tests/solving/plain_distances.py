"""The smallest solver for games without dice: all positions that can be reached, over and over, by reference rules.

Knows nothing of indices, layers, kernels or looking back.
"""

import importlib

CLOCKS = {"petteia": 2, "yote": 4}
"""Which field of a position text counts quiet moves."""


def distances(game, options, start):
    """{text: distance} of every position that can be reached from the text ``start``, clocks at 0.

    Positive: the mover wins in so many decisions, negative: he loses, 0: neither can force it. ``options`` have no
    endings by repetition or quiet moves.
    """
    moves = _moves(game, options, start)
    values = dict.fromkeys(moves, 0)
    open_texts = list(moves)
    length, found = 0, {"": 0}
    while found:
        length += 1
        found = {}
        for text in open_texts:
            worth = [_worth(move, values) for move in moves[text]]
            wins = [value for value in worth if value > 0]
            if wins:
                found[text] = min(wins)
            elif all(value < 0 for value in worth):
                found[text] = min(worth)
        # Longer ones may still become shorter wins.
        decided = {text: value for text, value in found.items() if abs(value) <= length}
        values |= decided
        open_texts = [text for text in open_texts if text not in decided]
    return values


def _worth(move, values):
    """Value of a move to its player."""
    same_side, after = move
    if isinstance(after, int):
        return after
    value = values[after]
    if value == 0:
        return 0
    further = value + 1 if value > 0 else value - 1
    return further if same_side else -further


def _moves(game, options, start):
    """{text: moves}; a move is whether the same side goes on, and the text it leads to or the result: 1, 0 or -1."""
    rules = importlib.import_module(f"tests.reference.{game}")
    moves, todo = {}, [start]
    while todo:
        text = todo.pop()
        if text in moves:
            continue
        position = rules.Game.from_text(options, text)
        moves[text] = []
        for move in position.legal_moves():
            after = position.copy()
            after.push(move)
            if after.is_over:
                result = 0 if after.winner is None else 1 if after.winner == position.to_move else -1
                moves[text].append((False, result))
                continue
            fields = after.text().split(" ")
            fields[CLOCKS[game]] = "0"
            moves[text].append((after.to_move == position.to_move, " ".join(fields)))
            todo.append(" ".join(fields))
    return moves
