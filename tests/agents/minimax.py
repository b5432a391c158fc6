"""Plain minimax over ``Position``, without pruning or order: what the compiled search is checked against."""

from tradgames_env.position import Position

QUICKER = 1e-6


def score(position: Position, depth: int, level: int = 0) -> float:
    """Score of a position for natural: wins 2 less a little for every decision, else the heuristic of the leaves."""
    if position.is_over:
        sign = {0: 1.0, 1: -1.0, None: 0.0}[position.winner]
        return sign * (2.0 - QUICKER * level)
    if depth == 0:
        return float(position.ruleset.kernels.heuristic(position.ruleset.params, *position.rows))
    scores = scores_by_move(position, depth, level).values()
    return max(scores) if position.to_move == 0 else min(scores)


def scores_by_move(position: Position, depth: int, level: int = 0) -> dict[str, float]:
    """For each legal move the score, for natural, of the position after it."""
    scores = {}
    for move in position.legal_moves():
        position.push(move)
        scores[move] = score(position, depth - 1, level + 1)
        position.pop()
    return scores


def best_moves(position: Position, depth: int) -> tuple[set[str], float]:
    """The mover's best moves and their score for him."""
    sign = 1.0 if position.to_move == 0 else -1.0
    scores = {move: sign * score for move, score in scores_by_move(position, depth).items()}
    best = max(scores.values())
    return {move for move, score in scores.items() if score == best}, best
