"""Masks of legal actions."""

import numpy as np
from numba import int8, int32, int64, types

from tradgames_env.rules.compiling import kernel


@kernel(types.void(int32[::1], int64, int8[::1]))
def mark_actions(actions, count, out_mask):  # type: ignore[no-untyped-def]
    """Write ones into ``out_mask`` (A,) at the first ``count`` of ``actions``."""
    for i in range(count):
        out_mask[np.uint32(actions[i])] = 1
