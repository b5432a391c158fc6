"""Looking ahead in games of dice: all throws and all moves of many positions, backed up as expected values.

A position is a *root*. Where a throw is due it has one *branch* for each outcome, where a seat decides it is its own
only branch. A branch in which a seat decides has one *leaf* for each legal move; any other (the game is over, or the
throw calls for one more) is its own only leaf. What the leaves are worth is asked of the evaluator once for all roots.
No dice are thrown, so nothing here is random: the mean over the throws is exact, and a throw's luck enters no value.
"""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from numba import float32, float64, int16, int32, int64, types, uint64
from numpy.typing import NDArray

from tradgames_env.rules.compiling import kernel
from tradgames_env.rules.contract import CHANCE, MARGIN, MOVER, OUTCOME, PAYOFF, RUNNING
from tradgames_env.rules.ruleset import Ruleset
from tradgames_env.rules.table import APPLY_SLOT, CHANCE_SLOT, LEGAL_SLOT, apply_at, chance_at, kernel_table, legal_at
from tradgames_env.search.evaluation import Evaluator, SearchResult

NO_MOVE = -1
"""In place of an action: the leaf is its branch."""

_ROOTS = 1 << 10
"""Roots expanded at a time, which bounds the space for their leaves and keeps a batch of them in the cache."""
_ROOM_OF_A_ROOT = 128
"""Leaves for which there is space at first, for each root; an expansion that needs more is done again with more."""


class _Space(NamedTuple):
    """What ``_expand`` writes, B branches and L leaves at most; those of a root or branch follow each other."""

    root_heads: Any
    """(N + 1,) int64: the first branch of each root, and the number of branches."""
    branch_heads: Any
    """(B + 1,) int64: the first leaf of each branch, and the number of leaves."""
    probabilities: Any
    """(B,) float32: of the throw."""
    movers: Any
    """(B,) int16: whose turn it is in each branch."""
    decided: Any
    """(B,) int16: 1 where a seat decides."""
    actions: Any
    """(L,) int32: the move that leads to each leaf, or NO_MOVE."""
    states: Any
    """(L, S) int16."""
    histories: Any
    """(L, H) uint64."""


_SPACE: Any = types.NamedTuple(  # type: ignore[no-untyped-call]
    (int64[::1], int64[::1], float32[::1], int16[::1], int16[::1], int32[::1], int16[:, ::1], uint64[:, ::1]), _Space
)


@kernel(types.void(int16[::1], uint64[::1], int16[::1], uint64[::1]), forceinline=True)
def _copy(state, history, out_state, out_history):  # type: ignore[no-untyped-def]
    """Copy two rows number by number; whole ones numba would copy by way of a third."""
    for cell in range(state.shape[0]):
        out_state[cell] = state[cell]
    for cell in range(history.shape[0]):
        out_history[cell] = history[cell]


@kernel(
    types.boolean(
        uint64[::1], int32[::1], float64[:, ::1], int16[:, ::1], uint64[:, ::1], int16[::1], uint64[::1], int32[::1],
        _SPACE,
    )
)  # fmt: skip
def _expand(  # type: ignore[no-untyped-def]
    table, params, odds, states, histories, branch, branch_history, legal_actions, space
):
    """Write the branches and leaves of all roots; False where the space does not hold them.

    ``odds`` are cumulative as ``chance.odds_table`` makes them; ``branch``, ``branch_history`` and ``legal_actions``
    are scratch.
    """
    legal, apply, apply_chance = (
        legal_at(table[LEGAL_SLOT]), apply_at(table[APPLY_SLOT]), chance_at(table[CHANCE_SLOT]),
    )  # fmt: skip
    branches = leaves = 0
    for i in range(states.shape[0]):
        space.root_heads[i] = branches
        kind = np.int64(states[i, CHANCE])
        outcomes = 1
        if kind != 0:
            while odds[kind - 1, outcomes - 1] <= 1.0:
                outcomes += 1
        for outcome in range(outcomes):
            if branches == space.movers.shape[0] or leaves + legal_actions.shape[0] > space.actions.shape[0]:
                return False
            _copy(states[i], histories[i], branch, branch_history)
            below, upper = 0.0, 1.0
            if kind != 0:
                below = odds[kind - 1, outcome - 1] if outcome > 0 else 0.0
                upper = odds[kind - 1, outcome] if outcome < outcomes - 1 else 1.0
                apply_chance(params, branch, branch_history, np.int64(outcome))
            decided = branch[OUTCOME] == RUNNING and branch[CHANCE] == 0
            space.probabilities[branches] = np.float32(upper - below)
            space.movers[branches] = branch[MOVER]
            space.decided[branches] = np.int16(decided)
            space.branch_heads[branches] = leaves
            branches += 1
            moves = legal(params, branch, branch_history, legal_actions) if decided else 1
            for k in range(moves):
                _copy(branch, branch_history, space.states[leaves], space.histories[leaves])
                space.actions[leaves] = NO_MOVE
                if decided:
                    space.actions[leaves] = legal_actions[k]
                    apply(params, space.states[leaves], space.histories[leaves], np.int64(legal_actions[k]))
                leaves += 1
    space.root_heads[states.shape[0]] = branches
    space.branch_heads[branches] = leaves
    return True


@kernel(
    types.void(
        int16[:, ::1], int64[::1], int64[::1], float32[::1], int16[::1], int16[:, ::1], float32[::1], float32[::1],
        float32[::1], int64[::1],
    )
)  # fmt: skip
def _back_up(  # type: ignore[no-untyped-def]
    roots, root_heads, branch_heads, probabilities, movers, leaf_states, utilities, out_values, out_branch_values,
    out_best,
):  # fmt: skip
    """Write the value of every root and branch to its mover, and the first best leaf of each branch.

    ``utilities``, of the leaves for their movers, are turned into those for the movers of their branches.
    """
    for i in range(roots.shape[0]):
        value = 0.0
        for branch in range(root_heads[i], root_heads[i + 1]):
            best = branch_heads[branch]
            for leaf in range(branch_heads[branch], branch_heads[branch + 1]):
                if leaf_states[leaf, MOVER] != movers[branch]:
                    utilities[leaf] = -utilities[leaf]
                if utilities[leaf] > utilities[best]:
                    best = leaf
            out_best[branch] = best
            out_branch_values[branch] = utilities[best]
            sign = 1.0 if movers[branch] == roots[i, MOVER] else -1.0
            value += sign * probabilities[branch] * utilities[best]
        out_values[i] = value


@dataclasses.dataclass(frozen=True, eq=False)
class Outlook:
    """What lies ahead of N roots: B branches and L leaves.

    Attributes:
        values: (N,) float32, utility of each root for its mover: the mean over the throws of the best move's.
        root_heads: (N + 1,) int64; root i has the branches from ``root_heads[i]`` to ``root_heads[i + 1] - 1``, one for
            each outcome of its throw in the order of its kind, or a single one where no throw is due.
        branch_heads: (B + 1,) int64; the leaves of a branch, likewise.
        probabilities: (B,) float32, of the outcomes; they sum to 1 over the branches of a root.
        movers: (B,) int16, whose turn it is.
        decided: (B,) bool, a seat decides there.
        branch_values: (B,) float32, utility for the mover of the branch.
        best: (B,) int64, the first of the best leaves.
        actions: (L,) int32, what leads to each leaf; NO_MOVE where its branch is not decided.
        utilities: (L,) float32, for the mover of the branch.
    """

    values: NDArray[np.float32]
    root_heads: NDArray[np.int64]
    branch_heads: NDArray[np.int64]
    probabilities: NDArray[np.float32]
    movers: NDArray[np.int16]
    decided: NDArray[np.bool_]
    branch_values: NDArray[np.float32]
    best: NDArray[np.int64]
    actions: NDArray[np.int32]
    utilities: NDArray[np.float32]


class Expectimax:
    """Chooses moves by expected values some moves ahead, in games of dice; in others it is full-width minimax.

    Args:
        ruleset: what is played.
        plies: moves looked ahead, at least 1; the throws between them are averaged over.
        temperature: of the policies, in utility: a move worth that much less than another is e times less probable.
        margin_weight: of the final margin in utilities, which the evaluator's contain too.

    Raises:
        ValueError: fewer plies than 1, or a temperature that is not positive.
    """

    def __init__(
        self, ruleset: Ruleset, *, plies: int = 1, temperature: float = 0.02, margin_weight: float = 0.0
    ) -> None:
        if plies < 1:
            raise ValueError(f"plies must be 1 or more, not {plies!r}")
        if not temperature > 0.0:
            raise ValueError(f"temperature must be positive, not {temperature!r}")
        self.ruleset = ruleset
        self.plies = plies
        self.temperature = temperature
        self.margin_weight = margin_weight
        self._room = _ROOM_OF_A_ROOT

    def improve(
        self, evaluate: Evaluator, states: NDArray[np.int16], histories: NDArray[np.uint64],
        budgets: NDArray[np.int32], words: NDArray[np.uint64],
    ) -> SearchResult:  # fmt: skip
        """The best move of each position in which a seat decides, the first of equals.

        Args:
            evaluate: judges the positions that the last move looked at leads to.
            states: (N, S) int16.
            histories: (N, H) uint64.
            budgets: (N,) int32, not used: the depth is the same for all.
            words: (N,) uint64, not used: nothing is random.
        """
        outlook = self.look(evaluate, states, histories)
        policies = self.policies(outlook)
        prior, _ = evaluate(states, histories)
        return SearchResult(
            actions=outlook.actions[outlook.best].astype(np.int64),
            policies=policies,
            values=outlook.values,
            surprises=_surprises(policies, prior, outlook),
        )

    def look(self, evaluate: Evaluator, states: NDArray[np.int16], histories: NDArray[np.uint64]) -> Outlook:
        """What lies ahead of running positions, in which a seat decides or a throw is due.

        Args:
            evaluate: judges the positions that the last move looked at leads to.
            states: (N, S) int16, N at least 1.
            histories: (N, H) uint64.
        """
        parts = [
            self._look(evaluate, states[begin : begin + _ROOTS], histories[begin : begin + _ROOTS], self.plies)
            for begin in range(0, len(states), _ROOTS)
        ]
        return parts[0] if len(parts) == 1 else _joined(parts)

    def policies(self, outlook: Outlook) -> NDArray[np.float32]:
        """(B, A) float32: the moves of each branch, those of higher utility more probable, as the temperature says.

        Rows of branches in which no seat decides are 0.
        """
        counts = np.diff(outlook.branch_heads)
        scaled = (outlook.utilities - np.repeat(outlook.branch_values, counts)) / np.float32(self.temperature)
        weights = np.exp(scaled)
        weights /= np.repeat(np.add.reduceat(weights, outlook.branch_heads[:-1]), counts)
        table = np.zeros((len(counts), self.ruleset.num_actions), np.float32)
        chosen = outlook.actions != NO_MOVE
        table[np.repeat(np.arange(len(counts)), counts)[chosen], outlook.actions[chosen]] = weights[chosen]
        return table

    def _look(
        self, evaluate: Evaluator, states: NDArray[np.int16], histories: NDArray[np.uint64], plies: int
    ) -> Outlook:
        space = self._expanded(states, histories)
        branches = int(space.root_heads[-1])
        branch_heads = space.branch_heads[: branches + 1]
        leaves = int(branch_heads[-1])
        utilities = self._worth(evaluate, space.states[:leaves], space.histories[:leaves], plies)
        movers, probabilities = space.movers[:branches].copy(), space.probabilities[:branches].copy()
        values, branch_values = np.empty(len(states), np.float32), np.empty(branches, np.float32)
        best = np.empty(branches, np.int64)
        _back_up(
            states, space.root_heads, branch_heads, probabilities, movers, space.states, utilities, values,
            branch_values, best,
        )  # fmt: skip
        return Outlook(
            values=values,
            root_heads=space.root_heads,
            branch_heads=branch_heads.copy(),
            probabilities=probabilities,
            movers=movers,
            decided=space.decided[:branches] == 1,
            branch_values=branch_values,
            best=best,
            actions=space.actions[:leaves].copy(),
            utilities=utilities,
        )

    def _expanded(self, states: NDArray[np.int16], histories: NDArray[np.uint64]) -> _Space:
        ruleset = self.ruleset
        scratch = np.empty(ruleset.state_size, np.int16), np.empty(ruleset.history_size, np.uint64)
        actions = np.empty(ruleset.num_actions, np.int32)
        while True:
            space = self._space(len(states))
            if _expand(
                kernel_table(ruleset.kernels), ruleset.params, ruleset.odds, states, histories, *scratch, actions, space
            ):
                return space
            self._room *= 2

    def _space(self, roots: int) -> _Space:
        ruleset = self.ruleset
        branches = roots * ruleset.odds.shape[1]
        leaves = roots * self._room + ruleset.num_actions
        return _Space(
            root_heads=np.empty(roots + 1, np.int64),
            branch_heads=np.empty(branches + 1, np.int64),
            probabilities=np.empty(branches, np.float32),
            movers=np.empty(branches, np.int16),
            decided=np.empty(branches, np.int16),
            actions=np.empty(leaves, np.int32),
            states=np.empty((leaves, ruleset.state_size), np.int16),
            histories=np.empty((leaves, ruleset.history_size), np.uint64),
        )

    def _worth(
        self, evaluate: Evaluator, states: NDArray[np.int16], histories: NDArray[np.uint64], plies: int
    ) -> NDArray[np.float32]:
        """(L,) float32: utility of each leaf for its own mover; exact where the game is over."""
        utilities = self._final(states)
        running = np.flatnonzero(states[:, OUTCOME] == RUNNING)
        for begin in range(0, len(running), _ROOTS) if plies > 1 else ():
            some = running[begin : begin + _ROOTS]
            utilities[some] = self._look(evaluate, states[some], histories[some], plies - 1).values
        if plies == 1 and len(running):
            utilities[running] = evaluate(states[running], histories[running])[1]
        return utilities

    def _final(self, states: NDArray[np.int16]) -> NDArray[np.float32]:
        """(L,) float32: utility for the mover if the game ended with what is on the board."""
        ruleset = self.ruleset
        share = states[:, MARGIN] / np.float32(ruleset.rules.margin_scale(ruleset.options))
        natural = np.clip(states[:, PAYOFF], -1, 1) + np.float32(self.margin_weight) * share
        return np.where(states[:, MOVER] == 0, natural, -natural).astype(np.float32)


def _joined(parts: list[Outlook]) -> Outlook:
    """One outlook of the roots of all parts."""
    joined = {
        field.name: np.concatenate([getattr(part, field.name) for part in parts])
        for field in dataclasses.fields(Outlook)
    }
    branches = np.cumsum([0, *(len(part.movers) for part in parts)])
    leaves = np.cumsum([0, *(len(part.actions) for part in parts)])
    joined["root_heads"] = _chained([part.root_heads for part in parts], branches)
    joined["branch_heads"] = _chained([part.branch_heads for part in parts], leaves)
    joined["best"] = np.concatenate([part.best + first for part, first in zip(parts, leaves, strict=False)])
    return Outlook(**joined)


def _chained(heads: list[NDArray[np.int64]], firsts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Heads of lists that follow each other."""
    moved = [part[:-1] + first for part, first in zip(heads, firsts, strict=False)]
    return np.concatenate([*moved, firsts[-1:]])


def _surprises(policies: NDArray[np.float32], logits: NDArray[np.float32], outlook: Outlook) -> NDArray[np.float32]:
    """(N,) float32: divergence of each policy from the softmax of the logits of its moves, in nats."""
    counts = np.diff(outlook.branch_heads)
    rows = np.repeat(np.arange(len(counts)), counts)
    heads = outlook.branch_heads[:-1]
    prior = logits[rows, outlook.actions].astype(np.float64)
    prior -= np.repeat(np.maximum.reduceat(prior, heads), counts)
    prior -= np.log(np.repeat(np.add.reduceat(np.exp(prior), heads), counts))
    improved = policies[rows, outlook.actions].astype(np.float64)
    with np.errstate(divide="ignore"):
        logs = np.where(improved > 0.0, np.log(improved), 0.0)
    return np.add.reduceat(improved * (logs - prior), heads).astype(np.float32)
