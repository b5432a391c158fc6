"""Gumbel AlphaZero search (Danihelka et al., ICLR 2022) over many positions in lockstep, with throws.

At the root, the actions of the highest sum of Gumbel noise and log prior are considered and halved by what the search
finds (sequential halving); below it, actions are chosen so that visits approach the improved policy. That policy is
proportional to ``prior * exp(sigma(q))``: ``q`` is the mean of the simulations through an action, or for one that was
never tried a mixture of the network's value and the tried actions' values, scaled to [0, 1] among the actions of a
node. Formulas and constants are those of DeepMind's mctx. Two things differ:

* The considered actions of a round are searched side by side, since their subtrees have nothing in common: a batch of
  one position still asks the network for several at once. They are ranked when their number is halved, not in between.
* Certain results (``tree.py``) take the place of means: what is lost is not visited, a won root is searched no further.

At a throw the outcome that is furthest behind its odds is next, so that averages approach expectations without noise.
"""

import numpy as np
from numba import boolean, float32, float64, int64, types, uint64
from numpy.typing import NDArray

from tradgames_env.rules.chance import random_unit
from tradgames_env.rules.compiling import kernel
from tradgames_env.rules.contract import CHANCE, OUTCOME, RUNNING
from tradgames_env.rules.ruleset import Ruleset
from tradgames_env.search.evaluation import Evaluator, SearchResult
from tradgames_env.search.tree import (
    BLACK_WON,
    C_SCALE,
    C_VISIT,
    CHILD,
    CONSIDERED,
    COUNT,
    EDGE_VERDICT,
    EXACT,
    FIRST,
    FULL,
    JUDGED_ROWS,
    KIND,
    LEFT,
    NATURAL_WON,
    NEXT,
    NONE,
    OPEN,
    RAW,
    ROUNDS,
    ROW,
    SIDE,
    SIMULATIONS,
    TREES,
    TRIED,
    TRIED_PRIOR,
    USED_ROWS,
    VALUE,
    VERDICT,
    VISITS,
    Trees,
    back_up,
    due_outcome,
    enlarge,
    grow,
    judge_leaves,
    open_roots,
    plant,
)

MOST_SIMULATIONS = 1_000_000
LEAST_SPAN = 1e-8
"""Differences of values below this are not blown up to [0, 1]."""
_TINY = 1e-300
_HALF_A_STEP = 0.5**54
"""Keeps logarithms of uniform numbers, which are multiples of 2**-53, from 0."""
_LOST = -1.0e18
"""Score of an action that is certain to lose."""


@kernel(int64(TREES, int64), forceinline=True)
def _best_edge(trees, node):  # type: ignore[no-untyped-def]
    """Edge of a decision below the root at which visits are furthest behind the improved policy; none that is lost."""
    edges, values, scores = trees.edges, trees.edge_values, trees.scores
    first, tried = np.int64(trees.nodes[node, FIRST]), np.int64(trees.nodes[node, TRIED])
    has_untried = tried < trees.nodes[node, COUNT]
    sign = -1.0 if trees.nodes[node, SIDE] else 1.0
    lost = NATURAL_WON if trees.nodes[node, SIDE] else BLACK_WON
    simulations = float(trees.nodes[node, SIMULATIONS])
    if tried == 0:
        return first
    weighted, most, low, high = 0.0, 0, 1e9, -1e9
    for k in range(tried):
        worth = sign * values[first + k, VALUE]
        weighted += trees.priors[first + k] * worth
        most = max(most, edges[first + k, VISITS])
        low, high = min(low, worth), max(high, worth)
    tried_prior = trees.node_values[node, TRIED_PRIOR]
    mixed = sign * trees.node_values[node, RAW]
    mixed = (mixed + simulations * weighted / max(tried_prior, _TINY)) / (simulations + 1.0)
    if has_untried:
        low, high = min(low, mixed), max(high, mixed)
    scale = (trees.settings[C_VISIT] + most) * trees.settings[C_SCALE] / max(high - low, LEAST_SPAN)
    lift = np.exp(scale * (mixed - high)) if has_untried else 0.0
    total = max(1.0 - tried_prior, 0.0) * lift
    for k in range(tried):
        scores[k] = trees.priors[first + k] * np.exp(scale * (sign * values[first + k, VALUE] - high))
        total += scores[k]
    total = max(total, _TINY)
    best, most_behind = first + tried, -1e9
    if has_untried:
        most_behind = trees.priors[best] * lift / total
    for k in range(tried):
        behind = scores[k] / total - edges[first + k, VISITS] / (simulations + 1.0)
        if behind > most_behind and edges[first + k, EDGE_VERDICT] != lost:
            best, most_behind = first + k, behind
    return best


@kernel(int64(TREES, int64, int64), forceinline=True)
def _simulate(trees, root, edge):  # type: ignore[no-untyped-def]
    """One simulation through an edge of the root: the row of a new decision, or NO_LEAF or FULL as in ``grow``."""
    nodes, edges = trees.nodes, trees.edges
    node, length, base = root, 0, np.int64(nodes[root, ROW])
    while True:
        trees.pending[length] = edge
        length += 1
        child = np.int64(edges[edge, CHILD])
        if child == NONE or edges[edge, EDGE_VERDICT] != OPEN:
            break
        node = child
        if nodes[node, KIND] != 0:
            edge = due_outcome(trees, node)
        else:
            edge, base, length = _best_edge(trees, node), np.int64(nodes[node, ROW]), 0
    if edges[edge, EDGE_VERDICT] != OPEN:
        back_up(trees, node, edge, trees.edge_values[edge, VALUE])
        return -1
    return grow(trees, base, node, edge, length)


@kernel(float64(TREES, int64), forceinline=True)
def _complete(trees, root):  # type: ignore[no-untyped-def]
    """Write to ``scores`` sigma(q) less its maximum, for each edge of a root; return the mixed value, the mover's."""
    edges, values, scores = trees.edges, trees.edge_values, trees.scores
    first, count = trees.nodes[root, FIRST], trees.nodes[root, COUNT]
    sign = -1.0 if trees.nodes[root, SIDE] else 1.0
    simulations = float(trees.nodes[root, SIMULATIONS])
    known_prior, weighted, most = 0.0, 0.0, 0
    for k in range(count):
        edge = first + k
        most = max(most, edges[edge, VISITS])
        if edges[edge, VISITS] > 0 or edges[edge, EDGE_VERDICT] != OPEN:
            known_prior += trees.priors[edge]
            weighted += trees.priors[edge] * sign * values[edge, VALUE]
    mixed = sign * trees.node_values[root, RAW]
    mixed = (mixed + simulations * weighted / max(known_prior, _TINY)) / (simulations + 1.0)
    low, high = 1e9, -1e9
    for k in range(count):
        edge = first + k
        is_known = edges[edge, VISITS] > 0 or edges[edge, EDGE_VERDICT] != OPEN
        scores[k] = sign * values[edge, VALUE] if is_known else mixed
        low, high = min(low, scores[k]), max(high, scores[k])
    scale = (trees.settings[C_VISIT] + most) * trees.settings[C_SCALE] / max(high - low, LEAST_SPAN)
    for k in range(count):
        scores[k] = scale * (scores[k] - high)
    return mixed


@kernel(boolean(TREES, int64, int64), forceinline=True)
def _is_lost(trees, root, edge):  # type: ignore[no-untyped-def]
    return trees.edges[edge, EDGE_VERDICT] == (NATURAL_WON if trees.nodes[root, SIDE] else BLACK_WON)


@kernel(types.void(TREES, int64))
def _rank(trees, root):  # type: ignore[no-untyped-def]
    """Sort the considered edges of a root by noise, prior and value together, best first, lost ones last."""
    candidates = trees.candidates[root]
    _complete(trees, root)
    first = trees.nodes[root, FIRST]
    for k in range(trees.nodes[root, COUNT]):
        trees.scores[k] += trees.gumbels[root, k]
        if _is_lost(trees, root, first + k):
            trees.scores[k] = _LOST
    for k in range(1, trees.plans[root, CONSIDERED]):
        moved = candidates[k]
        score, place = trees.scores[moved - first], k
        while place > 0:
            ahead = score - trees.scores[candidates[place - 1] - first]
            if ahead < 0.0 or (ahead == 0.0 and trees.actions[moved] > trees.actions[candidates[place - 1]]):
                break
            candidates[place] = candidates[place - 1]
            place -= 1
        candidates[place] = moved


@kernel(types.void(TREES, int64, int64))
def _consider(trees, root, most):  # type: ignore[no-untyped-def]
    """Rank the considered edges of a root and keep the ``most`` best; where all of them are lost, try the others."""
    plan, candidates = trees.plans[root], trees.candidates[root]
    _rank(trees, root)
    if _is_lost(trees, root, candidates[0]):
        plan[CONSIDERED] = trees.nodes[root, COUNT]
        _rank(trees, root)
    plan[CONSIDERED] = min(np.int64(plan[CONSIDERED]), most)
    while plan[CONSIDERED] > 1 and _is_lost(trees, root, candidates[plan[CONSIDERED] - 1]):
        plan[CONSIDERED] -= 1


@kernel(types.void(TREES, int64[::1], int64, boolean, uint64[:, ::1]))
def plan_searches(trees, budgets, considered, noise, words):  # type: ignore[no-untyped-def]
    """Draw the roots' noise and choose what each considers; those of one action or a certain result need no search."""
    for root in range(budgets.shape[0]):
        first, count = trees.nodes[root, FIRST], trees.nodes[root, COUNT]
        plan = trees.plans[root]
        for k in range(count):
            trees.candidates[root, k] = first + k
            trees.gumbels[root, k] = np.log(max(trees.priors[first + k], _TINY))
            if noise:
                trees.gumbels[root, k] -= np.log(-np.log(random_unit(words[root]) + _HALF_A_STEP))
        plan[CONSIDERED] = count
        _consider(trees, root, considered)
        plan[LEFT] = budgets[root] if count > 1 and trees.nodes[root, VERDICT] == OPEN else 0
        plan[ROUNDS] = 0
        plan[NEXT] = 0


@kernel(types.void(TREES, int64, int64, int64))
def _begin_phase(trees, root, budget, considered):  # type: ignore[no-untyped-def]
    """Sequential halving: consider half as many actions, for as many rounds as give each phase an equal share."""
    plan = trees.plans[root]
    if trees.nodes[root, SIMULATIONS] > 0:
        _consider(trees, root, max(2, plan[CONSIDERED] // 2))
    phases = 1
    while 2**phases < min(considered, np.int64(trees.nodes[root, COUNT])):
        phases += 1
    plan[ROUNDS] = max(1, budget // (phases * plan[CONSIDERED]))


@kernel(int64(TREES, int64), forceinline=True)
def _lost_candidates(trees, root):  # type: ignore[no-untyped-def]
    """How many of the considered actions have turned out to lose."""
    lost = 0
    for k in range(trees.plans[root, CONSIDERED]):
        lost += _is_lost(trees, root, trees.candidates[root, k])
    return lost


@kernel(int64(TREES, int64[::1], int64, int64))
def run_round(trees, budgets, considered, begin):  # type: ignore[no-untyped-def]
    """A simulation through each considered action of each root from ``begin`` on.

    Returns:
        The number of roots, or the root to go on with when there is more room.
    """
    for root in range(begin, budgets.shape[0]):
        plan = trees.plans[root]
        if plan[LEFT] == 0:
            continue
        if plan[ROUNDS] == 0:
            _begin_phase(trees, root, budgets[root], considered)
        last = min(plan[CONSIDERED], plan[NEXT] + plan[LEFT])
        for k in range(plan[NEXT], last):
            if _simulate(trees, root, np.int64(trees.candidates[root, k])) == FULL:
                plan[NEXT] = k
                return root
            plan[LEFT] -= 1
        plan[NEXT] = 0
        plan[ROUNDS] -= 1
        if trees.nodes[root, VERDICT] != OPEN:
            plan[LEFT] = 0
        elif _lost_candidates(trees, root) > 0:
            _consider(trees, root, np.int64(plan[CONSIDERED]))
    return budgets.shape[0]


@kernel(boolean(TREES, int64, int64), forceinline=True)
def _is_out(trees, root, edge):  # type: ignore[no-untyped-def]
    """Whether it is certain that the edge is worse than another one."""
    if trees.nodes[root, VERDICT] == OPEN:
        return _is_lost(trees, root, edge)
    is_known = trees.edges[edge, EDGE_VERDICT] != OPEN
    return not is_known or trees.edge_values[edge, VALUE] != trees.node_values[root, EXACT]


@kernel(int64(TREES, int64), forceinline=True)
def _choose(trees, root):  # type: ignore[no-untyped-def]
    """The edge to play, by ``scores`` of noise, prior and value: of the most visited that are not lost, the best.

    Where the result is certain, of those that keep it.
    """
    edges = trees.edges
    first, count = np.int64(trees.nodes[root, FIRST]), np.int64(trees.nodes[root, COUNT])
    is_certain = trees.nodes[root, VERDICT] != OPEN
    best = np.int64(NONE)
    for k in range(count):
        edge = first + k
        if _is_out(trees, root, edge):
            continue
        if best == NONE:
            best = edge
        ahead = 0 if is_certain else edges[edge, VISITS] - edges[best, VISITS]
        better = trees.scores[edge - first] - trees.scores[best - first]
        tied = ahead == 0 and better == 0.0 and trees.actions[edge] < trees.actions[best]
        if ahead > 0 or (ahead == 0 and better > 0.0) or tied:
            best = edge
    return best


@kernel(types.void(TREES, int64[::1], float32[:, ::1], float32[::1], float32[::1]))
def write_results(trees, out_actions, out_policies, out_values, out_surprises):  # type: ignore[no-untyped-def]
    """The fields of ``SearchResult`` for each root; ``out_policies`` is all zero before."""
    edges, values, scores = trees.edges, trees.edge_values, trees.scores
    for root in range(out_actions.shape[0]):
        first, count = np.int64(trees.nodes[root, FIRST]), np.int64(trees.nodes[root, COUNT])
        sign = -1.0 if trees.nodes[root, SIDE] else 1.0
        mixed = _complete(trees, root)
        for k in range(count):
            scores[k] += trees.gumbels[root, k]
        chosen = _choose(trees, root)
        out_actions[root] = trees.actions[chosen]
        _complete(trees, root)
        total = 0.0
        for k in range(count):
            scores[k] = 0.0 if _is_out(trees, root, first + k) else trees.priors[first + k] * np.exp(scores[k])
            total += scores[k]
        if total < _TINY:  # the policy rules out all that is left
            scores[chosen - first], total = 1.0, 1.0
        expected, surprise = 0.0, 0.0
        for k in range(count):
            edge, share = first + k, scores[k] / total
            is_known = edges[edge, VISITS] > 0 or edges[edge, EDGE_VERDICT] != OPEN
            expected += share * (sign * values[edge, VALUE] if is_known else mixed)
            out_policies[root, trees.actions[edge]] = share
            if share > 0.0:
                surprise += share * np.log(share / max(trees.priors[edge], _TINY))
        out_values[root] = expected
        out_surprises[root] = max(surprise, 0.0)


class GumbelSearch:
    """An ``Improver`` by Gumbel AlphaZero search.

    Args:
        ruleset: the game.
        considered: how many actions of a root are searched at most, those of the highest noise plus log prior.
        c_visit: how much values weigh against the policy before any visit.
        c_scale: how much they weigh more for each visit of the most visited action.
        margin_weight: what the largest possible margin at the end is worth, in wins.
        noise: whether the root's actions are drawn, as self-play needs it, or the best are taken.

    Raises:
        ValueError: a number is out of range.
    """

    def __init__(
        self,
        ruleset: Ruleset,
        *,
        considered: int = 16,
        c_visit: float = 50.0,
        c_scale: float = 0.1,
        margin_weight: float = 0.0,
        noise: bool = True,
    ) -> None:
        if considered < 1:
            raise ValueError(f"considered must be at least 1, not {considered!r}")
        for name, number in (("c_visit", c_visit), ("c_scale", c_scale), ("margin_weight", margin_weight)):
            if not 0.0 <= number < np.inf:
                raise ValueError(f"{name} must be 0 or a positive number, not {number!r}")
        self.ruleset = ruleset
        self._considered = considered
        self._noise = noise
        margin_share = margin_weight / ruleset.rules.margin_scale(ruleset.options)
        self._settings = np.array([c_visit, c_scale, margin_share])
        self._spare: Trees | None = None

    def improve(
        self,
        evaluate: Evaluator,
        states: NDArray[np.int16],
        histories: NDArray[np.uint64],
        budgets: NDArray[np.int32],
        words: NDArray[np.uint64],
    ) -> SearchResult:
        """Search N positions in which a seat decides, at least one; see ``Improver``.

        A budget of 0 asks for the policy alone. A position with one legal action, or with a win on the spot, is not
        searched. Values are what the improved policy expects.

        Raises:
            ValueError: in one of them no seat decides.
        """
        if (states[:, OUTCOME] != RUNNING).any() or (states[:, CHANCE] != 0).any():
            raise ValueError("a search starts where a seat decides; here a game is over or a throw is due")
        trees = self._search(evaluate, states, histories, budgets, words)
        count = len(states)
        actions, policies = np.empty(count, np.int64), np.zeros((count, self.ruleset.num_actions), np.float32)
        values, surprises = np.empty(count, np.float32), np.empty(count, np.float32)
        self._spare = trees
        write_results(trees, actions, policies, values, surprises)
        return SearchResult(actions, policies, values, surprises)

    def _search(
        self,
        evaluate: Evaluator,
        states: NDArray[np.int16],
        histories: NDArray[np.uint64],
        budgets: NDArray[np.int32],
        words: NDArray[np.uint64],
    ) -> Trees:
        """The trees after the search."""
        count = len(states)
        limits = np.ascontiguousarray(budgets, np.int64)
        trees = plant(self.ruleset, self._settings, states, histories, count + 1 + int(limits.sum()), self._spare)
        given = *_answers(evaluate(states, histories)), np.empty_like(states[0]), np.empty_like(histories[0])
        root = open_roots(trees, *given, 0)
        while root < count:
            trees = enlarge(trees)
            root = open_roots(trees, *given, root)
        plan_searches(trees, limits, self._considered, self._noise, words.reshape(count, 1))
        while trees.plans[:, LEFT].any():
            root = run_round(trees, limits, self._considered, 0)
            while root < count:
                trees = enlarge(trees)
                root = run_round(trees, limits, self._considered, root)
            leaves = slice(int(trees.used[JUDGED_ROWS]), int(trees.used[USED_ROWS]))
            if leaves.start < leaves.stop:
                judge_leaves(trees, *_answers(evaluate(trees.states[leaves], trees.histories[leaves])))
        return trees


def _answers(
    answers: tuple[NDArray[np.float32], NDArray[np.float32]],
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    logits, utilities = answers
    return np.ascontiguousarray(logits, np.float32), np.ascontiguousarray(utilities, np.float32)
