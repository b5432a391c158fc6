"""Every decision of a solved game, put to a trained network with its search: how often is it wrong?

    python benchmarks/solved_decisions.py runs/yote-mini/checkpoints/final --simulations 0 16 64

A decision is wrong if it gives away a win or a draw by the table, which ``tradgames solve`` makes. Counted are the
positions of the table, all or a sample, in which moves of different results are to choose from, whether play between
good players leads there or not. Each position is searched with a new history. With 0 simulations the network's policy
decides, apart from wins and losses on the spot.
"""

import argparse
import dataclasses
import time
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from tradgames_env.agents.checkpoint import read_checkpoint
from tradgames_env.agents.network import NetworkEvaluator, load_network
from tradgames_env.rules.contract import CHANCE, OUTCOME, RUNNING
from tradgames_env.search.gumbel import GumbelSearch
from tradgames_env.solving.lookup import judge_decisions
from tradgames_env.solving.retrograde import LOST
from tradgames_env.solving.table import Table, find_table

_BLOCK = 1 << 13
_SIDE_BY_SIDE = 256
_KINDS = {(1, 0): "won, played to a draw", (1, -1): "won, played to a loss", (0, -1): "drawn, played to a loss"}


@dataclasses.dataclass(frozen=True, eq=False)
class Decisions:
    """Positions of one block of a table in which the choice matters.

    Attributes:
        states: (N, S) int16.
        histories: (N, H) uint64, new ones.
    """

    states: NDArray[np.int16]
    histories: NDArray[np.uint64]


def decisions(table: Table, numbers: NDArray[np.int64]) -> Iterator[Decisions]:
    """The positions of these numbers in which moves of different results are to choose from, in blocks.

    Args:
        table: of distances.
        numbers: (M,) int64; holes and positions that are over are passed over.
    """
    ruleset, index = table.ruleset, table.index
    for begin in range(0, len(numbers), _BLOCK):
        block = numbers[begin : begin + _BLOCK]
        block = block[table.values[block] > LOST]
        states = np.zeros((len(block), ruleset.state_size), np.int16)
        histories = np.zeros((len(block), ruleset.history_size), np.uint64)
        for state, history, number in zip(states, histories, block, strict=True):
            index.unrank(ruleset.params, index.tables, int(number), state)
            ruleset.rules.start_history(ruleset.params, state, history)
        running = (states[:, OUTCOME] == RUNNING) & (states[:, CHANCE] == 0)
        states, histories = states[running], histories[running]
        if len(states) == 0:
            continue
        judgement = judge_decisions(table, states, histories)
        heads = judgement.heads[:-1]
        open_ = np.maximum.reduceat(judgement.values, heads) > np.minimum.reduceat(judgement.values, heads)
        yield Decisions(states[open_], histories[open_])


def choose(evaluator: NetworkEvaluator, search: GumbelSearch, simulations: int, found: Decisions) -> NDArray[np.int64]:
    """(N,) int64 actions in the decisions ``found``."""
    chosen = [np.empty(0, np.int64)]
    for begin in range(0, len(found.states), _SIDE_BY_SIDE):
        part = slice(begin, begin + _SIDE_BY_SIDE)
        states, histories = found.states[part], found.histories[part]
        budgets, words = np.full(len(states), simulations, np.int32), np.zeros(len(states), np.uint64)
        chosen.append(search.improve(evaluator, states, histories, budgets, words).actions)
    return np.concatenate(chosen)


def count_wrong(table: Table, found: Decisions, actions: NDArray[np.int64]) -> dict[tuple[int, int], int]:
    """How many of these actions give away how much: by the result that was there and the one that is left."""
    if len(actions) == 0:
        return dict.fromkeys(_KINDS, 0)
    judgement = judge_decisions(table, found.states, found.histories)
    best = np.maximum.reduceat(judgement.values, judgement.heads[:-1])
    left = judgement.values[judgement.places(np.arange(len(actions)), actions)]
    return {(there, after): int(((best == there) & (left == after)).sum()) for there, after in _KINDS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("--simulations", type=int, nargs="+", default=[0, 16, 64])
    parser.add_argument("--sample", type=int, help="numbers drawn from the table; all when absent")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    checkpoint = read_checkpoint(args.checkpoint)
    (ruleset,) = checkpoint.rulesets
    table = find_table(ruleset)
    if table is None:
        raise SystemExit(f"there is no table of {ruleset.label}; make it with tradgames solve")
    numbers = np.arange(len(table.values))
    if args.sample is not None:
        numbers = np.sort(np.random.default_rng(args.seed).choice(numbers, args.sample, replace=False))
    blocks = list(decisions(table, numbers))
    total = sum(len(block.states) for block in blocks)
    print(f"{ruleset.label}: {len(numbers):,} numbers, {total:,} decisions that matter", flush=True)
    evaluator = NetworkEvaluator(ruleset, load_network(checkpoint))
    search = GumbelSearch(ruleset, noise=False)
    for simulations in args.simulations:
        begin = time.perf_counter()
        with torch.inference_mode():
            counts = [count_wrong(table, block, choose(evaluator, search, simulations, block)) for block in blocks]
        sums = {kind: sum(count[kind] for count in counts) for kind in _KINDS}
        kinds = ", ".join(f"{number:,} {_KINDS[kind]}" for kind, number in sums.items())
        wrong = sum(sums.values())
        seconds = time.perf_counter() - begin
        print(
            f"{simulations:5d} simulations: {wrong:,} wrong ({wrong / total:.3%}): {kinds}; {seconds:.1f} s", flush=True
        )


if __name__ == "__main__":
    main()
