"""What the network learns from a game that was searched: lambda-returns of result, margin and draws.

All numbers are natural's here, so that nothing changes sign on the way through a game, whoever moves and however often;
the mover's view is taken at the end.

Letters: T decisions in a row, N games, K streams.
"""

import numpy as np
from numpy.typing import NDArray


def lambda_returns(
    values: NDArray[np.float32],
    expected: NDArray[np.float32],
    finals: NDArray[np.float32],
    ended: NDArray[np.bool_],
    cut: NDArray[np.bool_],
    trace: float,
) -> NDArray[np.float32]:
    """Mixtures of what was expected at each decision and at those after it, and of what came out.

    The target of a decision is its value plus ``trace`` times the surprise: the target of the next decision, or the
    result at the last one of a game, less what was expected of it. Where no more is known, it is the value.

    Args:
        values: (T, N, K) of the position of each decision, after its search.
        expected: (T, N, K) of what the decision leads to. The value itself, unless a throw's luck is to be left out:
            then what was expected after the throw.
        finals: (T, N, K), how the game ended; read where ``ended``.
        ended: (T, N), the decision ended its game; what follows is another one.
        cut: (T, N), the move was not the player's own choice: what follows says nothing of the position.
        trace: lambda.

    Returns:
        (T, N, K) float32.
    """
    targets = values.copy()
    for step in reversed(range(len(values))):
        following = targets[step + 1] if step + 1 < len(values) else expected[step]
        following = np.where(ended[step, :, None], finals[step], following)
        surprise = np.where(cut[step, :, None], np.float32(0), following - expected[step])
        targets[step] += np.float32(trace) * surprise
    return targets


def ends_within(ended: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(T, N): the game of the decision is over by the end of the window (T, N)."""
    return np.logical_or.accumulate(ended[::-1], axis=0)[::-1]


def outcome_shares(results: NDArray[np.float32], draws: NDArray[np.float32]) -> NDArray[np.float32]:
    """(B, 3) shares of win, draw and loss with given expectations; the result counts where they contradict.

    Args:
        results: (B,) wins less losses, in [-1, 1].
        draws: (B,) in [0, 1].
    """
    drawn = np.clip(draws, 0.0, 1.0 - np.abs(results))
    decided = 1.0 - drawn
    return np.stack([(decided + results) / 2, drawn, (decided - results) / 2], axis=1).astype(np.float32)
