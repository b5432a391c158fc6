"""A game's kernels as CUDA device functions: ``python -m tests.on_cuda simulate puluc`` or ``... compile puluc``.

``simulate`` (under NUMBA_ENABLE_CUDASIM=1) plays games in CUDA threads and, with the same throws and moves, in
``BatchGames``; ``compile`` translates the same to PTX, for which libnvvm of the CUDA toolkit is enough, without a GPU.
"""

import functools
import importlib
import sys
import types as python_types
from typing import Any

import numpy as np
from numba import cuda, int8, int16, int32, typeof, uint64
from numba.core.dispatcher import Dispatcher

import tradgames_env as tg
from tradgames_env.rules.chance import seed_generators
from tradgames_env.rules.contract import OUTCOME, RUNNING
from tradgames_env.rules.ruleset import load_ruleset

NUM_GAMES, MOVES = 5, 150
COMPUTE_CAPABILITY = (8, 0)


@cuda.jit(device=True)
def _smaller(a, b):  # type: ignore[no-untyped-def]
    return a if a < b else b


@cuda.jit(device=True)
def _larger(a, b):  # type: ignore[no-untyped-def]
    return a if a > b else b


@functools.cache
def device_functions(module: str) -> dict[str, Any]:
    """A module's namespace with every compiled function replaced by the same Python function for the device."""
    # numba's own CUDA target cannot call min and max: what it takes over from the CPU has any number of arguments.
    namespace = {**vars(importlib.import_module(module)), "min": _smaller, "max": _larger}
    for name, value in namespace.items():
        if isinstance(value, Dispatcher) and value.py_func.__module__ != module:
            namespace[name] = device_functions(value.py_func.__module__)[value.py_func.__name__]
        elif isinstance(value, Dispatcher):
            function = python_types.FunctionType(value.py_func.__code__, namespace, name)
            namespace[name] = cuda.jit(device=True)(function)
    return namespace


GAME = sys.argv[2]
_rules = device_functions(f"tradgames_env.rules.{GAME}")
_chance = device_functions("tradgames_env.rules.chance")
initial, legal, apply, apply_chance = (_rules[name] for name in ("initial", "legal", "apply", "apply_chance"))
resolve_chance, random_below = _chance["resolve_chance"], _chance["random_below"]
start_game = device_functions("tradgames_env.rules.batch")["start_game"]


def play(params, odds, states, histories, dice, choices, scratch, moved, seen, finished):  # type: ignore[no-untyped-def]
    """Each thread plays a game at random, anew whenever it ends, and notes moves (M, N) and states (M, N, S)."""
    game = cuda.grid(1)
    if game >= states.shape[0]:
        return
    state, history, rng = states[game], histories[game], dice[game]
    start_game(initial, apply_chance, params, odds, state, history, rng)
    for move in range(moved.shape[0]):
        count = legal(params, state, history, scratch[game])
        action = scratch[game, random_below(choices[game], count)]
        apply(params, state, history, action)
        resolve_chance(apply_chance, params, odds, state, history, rng)
        if state[OUTCOME] != RUNNING:
            finished[game] += 1
            start_game(initial, apply_chance, params, odds, state, history, rng)
        moved[move, game] = action
        for cell in range(state.shape[0]):
            seen[move, game, cell] = state[cell]


def simulate(variant: str) -> None:
    """Play in CUDA threads and in ``BatchGames``; fail at the first difference."""
    ruleset = load_ruleset(GAME, variant)
    states = np.zeros((NUM_GAMES, ruleset.state_size), np.int16)
    histories = np.zeros((NUM_GAMES, ruleset.history_size), np.uint64)
    scratch = np.zeros((NUM_GAMES, ruleset.num_actions), np.int32)
    dice, choices = (seed_generators(seed, NUM_GAMES)[:, None].copy() for seed in (5, 6))
    moved = np.zeros((MOVES, NUM_GAMES), np.int32)
    seen = np.zeros((MOVES, NUM_GAMES, ruleset.state_size), np.int16)
    finished = np.zeros(NUM_GAMES, np.int8)
    threads = 4  # more than one block, the last not full
    blocks = (NUM_GAMES + threads - 1) // threads
    cuda.jit(play)[blocks, threads](
        ruleset.params, ruleset.odds, states, histories, dice, choices, scratch, moved, seen, finished
    )
    games = tg.BatchGames(GAME, variant, num_games=NUM_GAMES, seed=5)
    ended = np.zeros(NUM_GAMES, np.int8)
    for move in range(MOVES):
        assert games.action_masks[np.arange(NUM_GAMES), moved[move]].all(), move
        games.step(moved[move])
        ended += games.terminated | games.truncated
        np.testing.assert_array_equal(games.states, seen[move])
    np.testing.assert_array_equal(ended, finished)
    positions = len(np.unique(seen.reshape(-1, ruleset.state_size), axis=0))
    sys.stdout.write(f"{variant} ended {ended.sum()} positions {positions}\n")


def compile_to_ptx() -> None:
    """Write "no nvvm", or how many lines the PTX has and how many calls are left in it."""
    from numba.cuda import compile_ptx, dispatcher
    from numba.cuda.cudadrv.error import NvvmSupportError
    from numba.cuda.cudadrv.nvvm import NVVM, LibDevice

    try:
        NVVM()
        LibDevice()
    except (NvvmSupportError, RuntimeError):
        sys.stdout.write("no nvvm\n")
        return
    # Functions called by a kernel are compiled for the current device; there need not be one here.
    dispatcher.get_current_device = lambda: python_types.SimpleNamespace(compute_capability=COMPUTE_CAPABILITY)
    ruleset = load_ruleset(GAME)
    words, rows = uint64[:, ::1], int16[:, ::1]
    arguments = (
        typeof(ruleset.params.copy()), typeof(ruleset.odds.copy()), rows, words, words, words, int32[:, ::1],
        int32[:, ::1], int16[:, :, ::1], int8[::1],
    )  # fmt: skip
    ptx, _ = compile_ptx(play, arguments, cc=COMPUTE_CAPABILITY)
    start = "entry" if ".entry" in ptx else "nothing"
    sys.stdout.write(f"{start} calls {ptx.count('call')} lines {len(ptx.splitlines())}\n")


if __name__ == "__main__":
    if sys.argv[1] == "simulate":
        for variant in ("box", "mini"):  # the longest games and some that end often
            simulate(variant)
    else:
        compile_to_ptx()
