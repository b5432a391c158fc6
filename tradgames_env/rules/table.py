"""A game's kernels as a row of addresses, and back: how loops that serve all games are told which game to play."""

import functools
from typing import Any

import numpy as np
from numba import config
from numpy.typing import NDArray

from tradgames_env.rules.compiling import address_of, kernel_at
from tradgames_env.rules.contract import APPLY, APPLY_CHANCE, HEURISTIC, INITIAL, LEGAL, SAMPLE, VIEW, Kernels

_SIGNATURES = {
    "initial": INITIAL,
    "legal": LEGAL,
    "apply": APPLY,
    "apply_chance": APPLY_CHANCE,
    "sample": SAMPLE,
    "view": VIEW,
    "heuristic": HEURISTIC,
}
INITIAL_SLOT, LEGAL_SLOT, APPLY_SLOT, CHANCE_SLOT, SAMPLE_SLOT, VIEW_SLOT, HEURISTIC_SLOT = range(len(_SIGNATURES))

initial_at, legal_at, apply_at = kernel_at(INITIAL), kernel_at(LEGAL), kernel_at(APPLY)
chance_at, sample_at, view_at = kernel_at(APPLY_CHANCE), kernel_at(SAMPLE), kernel_at(VIEW)
heuristic_at = kernel_at(HEURISTIC)


@functools.lru_cache(maxsize=128)  # which also keeps the kernels, and with them what is at the addresses
def kernel_table(kernels: Kernels) -> NDArray[np.uint64] | tuple[Any, ...]:
    """Addresses of a game's kernels for the loops, 0 for one it does not have; without compiler the kernels."""
    functions = [getattr(kernels, name) for name in _SIGNATURES]
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return tuple(functions)
    pairs = zip(functions, _SIGNATURES.values(), strict=True)
    return np.array([0 if function is None else address_of(function, of) for function, of in pairs], np.uint64)
