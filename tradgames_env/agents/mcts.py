"""Monte Carlo tree search with chance nodes, compiled over the rules' own kernels.

The tree has three sorts of nodes: a seat decides, a throw is due, the game is over. At a decision every child is tried
once, in random order, then the one of the highest upper bound ``value + exploration * sqrt(visits of the node) /
(moves * (1 + visits of the child))`` for the side that decides, so a side may decide twice running. That is the PUCT
rule of AlphaZero (Silver et al., 2018) with equal priors. At a throw the child is drawn by the throw's own odds, so
that averages become expectations; throws in a row are nodes in a row. Each simulation adds one node and judges it by
random play, cut off after some decisions and judged by the game's ``heuristic``, since random games may be long and
mostly drawn.

All throws and choices are drawn from the search's own generator: the game's own throws are not foreseen.

Letters: N nodes, at most simulations + 1; E edges; A actions; S and H sizes of a state and a history row.
"""

import numpy as np
from numba import float64, int16, int32, int64, types, uint64
from numpy.typing import NDArray

from tradgames_env.agents.actions import ActionAgent, checked_count, deciding_actions
from tradgames_env.position import Position
from tradgames_env.rules.chance import draw_outcome, random_below
from tradgames_env.rules.compiling import kernel
from tradgames_env.rules.contract import (
    APPLY,
    APPLY_CHANCE,
    CHANCE,
    HEURISTIC,
    LEGAL,
    MOVER,
    OUTCOME,
    PAYOFF,
    RUNNING,
)
from tradgames_env.rules.table import (
    APPLY_SLOT,
    CHANCE_SLOT,
    HEURISTIC_SLOT,
    LEGAL_SLOT,
    apply_at,
    chance_at,
    heuristic_at,
    kernel_table,
    legal_at,
)

EXPLORATION = 1.0
"""Weight of the exploration term for values in [-1, 1]. Of 0.3 to 4, 0.3 and 1 were strongest over the four games, and
stronger than UCB1 with any constant: with 56 moves to look at, its logarithm spreads the search too thin, and with a
small constant it never comes back to a good move whose first random game went wrong."""
ROLLOUT_DECISIONS = 5
"""Random decisions after a new node before the heuristic judges. Of 0 to 30, 2 to 10 were strongest: they settle what
is about to be captured, and more only add noise."""
MOST_SIMULATIONS = 10_000_000
MOST_ROLLOUT_DECISIONS = 10_000

VISITS, FIRST_EDGE, NUM_EDGES = range(3)
"""Columns of ``nodes`` (N, 3) int32. A node has no edges until it is visited again."""
MOVE, CHILD = range(2)
"""Columns of ``edges`` (E, 2) int32: action or index of a throw's outcome, and the node it leads to or UNVISITED."""
UNVISITED = -1
USED_NODES, USED_EDGES = range(2)
"""Entries of ``used`` (2,) int64."""

_LEGAL, _APPLY = types.FunctionType(LEGAL), types.FunctionType(APPLY)
_APPLY_CHANCE, _HEURISTIC = types.FunctionType(APPLY_CHANCE), types.FunctionType(HEURISTIC)
_PARAMS, _ODDS, _STATE, _HISTORY, _RNG = int32[::1], float64[:, ::1], int16[::1], uint64[::1], uint64[::1]
_NODES, _TOTALS, _EDGES, _USED, _ACTIONS = int32[:, ::1], float64[::1], int32[:, ::1], int64[::1], int32[::1]


@kernel(
    types.void(
        _LEGAL, _PARAMS, _ODDS, _STATE, _HISTORY, _NODES, _EDGES, _USED, int64, _ACTIONS, _RNG,
    ),
    counted=True,
)  # fmt: skip
def _expand(  # type: ignore[no-untyped-def]
    legal, params, odds, state, history, nodes, edges, used, node, scratch, rng
):
    """Give ``node`` its edges: the outcomes of the throw in their order, or the legal actions in random order."""
    first = used[USED_EDGES]
    if state[CHANCE] != 0:
        count = odds.shape[1]
        for i in range(count):
            edges[first + i, MOVE] = i
    else:
        count = legal(params, state, history, scratch)
        for i in range(count):
            other = random_below(rng, i + 1)
            edges[first + i, MOVE] = edges[first + other, MOVE]
            edges[first + other, MOVE] = scratch[i]
    edges[first : first + count, CHILD] = UNVISITED
    nodes[node, FIRST_EDGE] = first
    nodes[node, NUM_EDGES] = count
    used[USED_EDGES] = first + count


@kernel(int64(_NODES, _TOTALS, _EDGES, int64, float64, float64), counted=True)
def _choose_edge(nodes, totals, edges, node, sign, exploration):  # type: ignore[no-untyped-def]
    """The first edge never taken, else the one of the highest upper bound for the side of ``sign`` (natural: +1)."""
    first = int(nodes[node, FIRST_EDGE])
    best, best_edge = -1e9, first
    reach = exploration * np.sqrt(float(nodes[node, VISITS])) / nodes[node, NUM_EDGES]
    for edge in range(first, first + nodes[node, NUM_EDGES]):
        child = edges[edge, CHILD]
        if child == UNVISITED:
            return edge
        visits = np.float64(nodes[child, VISITS])
        bound = sign * totals[child] / visits + reach / (1.0 + visits)
        if bound > best:
            best, best_edge = bound, edge
    return best_edge


@kernel(
    float64(
        _LEGAL, _APPLY, _APPLY_CHANCE, _HEURISTIC, _PARAMS, _ODDS, _STATE, _HISTORY,
        int64, _ACTIONS, _RNG,
    ),
    counted=True,
)  # fmt: skip
def _play_out(  # type: ignore[no-untyped-def]
    legal, apply, apply_chance, heuristic, params, odds, state, history, decisions, scratch, rng
):
    """Natural's payoff, within [-1, 1], of random play in place, or its standing after ``decisions`` decisions."""
    while state[OUTCOME] == RUNNING:
        if state[CHANCE] != 0:
            apply_chance(params, state, history, draw_outcome(odds, np.int64(state[CHANCE]), rng))
            continue
        if decisions == 0:
            return heuristic(params, state, history)
        decisions -= 1
        count = legal(params, state, history, scratch)
        apply(params, state, history, np.int64(scratch[random_below(rng, count)]))
    return min(max(np.float64(state[PAYOFF]), -1.0), 1.0)


@kernel(
    types.void(
        _LEGAL, _APPLY, _APPLY_CHANCE, _HEURISTIC, _PARAMS, _ODDS, _STATE, _HISTORY,
        _NODES, _TOTALS, _EDGES, _USED, _ACTIONS, float64, int64, _ACTIONS, _RNG,
    ),
    counted=True,
)  # fmt: skip
def _simulate(  # type: ignore[no-untyped-def]
    legal, apply, apply_chance, heuristic, params, odds, state, history,
    nodes, totals, edges, used, path, exploration, decisions, scratch, rng,
):  # fmt: skip
    """From the root's position in ``state`` and ``history`` down to a new node or an end; judge it, tell the path."""
    node, length, is_new = 0, 0, False
    path[0] = 0
    while state[OUTCOME] == RUNNING and not is_new:
        if nodes[node, NUM_EDGES] == 0:
            _expand(legal, params, odds, state, history, nodes, edges, used, node, scratch, rng)
        if state[CHANCE] != 0:
            edge = nodes[node, FIRST_EDGE] + draw_outcome(odds, np.int64(state[CHANCE]), rng)
            apply_chance(params, state, history, np.int64(edges[edge, MOVE]))
        else:
            sign = -1.0 if state[MOVER] else 1.0
            edge = _choose_edge(nodes, totals, edges, node, sign, exploration)
            apply(params, state, history, np.int64(edges[edge, MOVE]))
        is_new = edges[edge, CHILD] == UNVISITED
        if is_new:
            edges[edge, CHILD] = used[USED_NODES]
            used[USED_NODES] += 1
        node = int(edges[edge, CHILD])
        length += 1
        path[length] = node
    value = _play_out(legal, apply, apply_chance, heuristic, params, odds, state, history, decisions, scratch, rng)
    for i in range(length + 1):
        nodes[path[i], VISITS] += 1
        totals[path[i]] += value


@kernel(
    int64(
        uint64[::1], _PARAMS, _ODDS, _STATE, _HISTORY,
        int64, float64, int64, _RNG, _ACTIONS, int64[::1], float64[::1],
    ),
    counted=True,
)  # fmt: skip
def search_moves(  # type: ignore[no-untyped-def]
    table, params, odds, root_state, root_history,
    simulations, exploration, decisions, rng, out_actions, out_visits, out_totals,
):  # fmt: skip
    """Search a position in which a seat decides; list its n legal actions with visits and values, return n.

    ``out_actions``, ``out_visits`` and ``out_totals`` (A,): ids, visits that sum to ``simulations``, sums of natural's
    values. ``table`` is the game's ``kernel_table``.
    """
    legal, apply = legal_at(table[LEGAL_SLOT]), apply_at(table[APPLY_SLOT])
    apply_chance, heuristic = chance_at(table[CHANCE_SLOT]), heuristic_at(table[HEURISTIC_SLOT])
    nodes, totals = np.zeros((simulations + 1, 3), np.int32), np.zeros(simulations + 1)
    path, scratch = np.empty(simulations + 2, np.int32), np.empty(out_actions.shape[0], np.int32)
    state, history = np.empty_like(root_state), np.empty_like(root_history)
    widest = max(out_actions.shape[0], odds.shape[1])
    edges = np.empty((2 * widest, 2), np.int32)
    used = np.array([1, 0], np.int64)
    for _ in range(simulations):
        if used[USED_EDGES] + widest > edges.shape[0]:  # a simulation expands at most one node
            grown = np.empty((2 * edges.shape[0], 2), np.int32)
            grown[: edges.shape[0]] = edges
            edges = grown
        state[:] = root_state
        history[:] = root_history
        _simulate(
            legal, apply, apply_chance, heuristic, params, odds, state, history,
            nodes, totals, edges, used, path, exploration, decisions, scratch, rng,
        )  # fmt: skip
    count = np.int64(nodes[0, NUM_EDGES])
    for i in range(count):
        child = edges[i, CHILD]
        out_actions[i] = edges[i, MOVE]
        out_visits[i] = nodes[child, VISITS] if child != UNVISITED else 0
        out_totals[i] = totals[child] if child != UNVISITED else 0.0
    return count


class MCTSAgent(ActionAgent):
    """Plays the move that its search visited most; of those the one of the best value, then drawn.

    Args:
        simulations: of each search, 1 to 10 million; memory grows with it, by some 100 bytes for each.
        exploration: weight of the exploration term, 0 or a positive number.
        rollout_decisions: random decisions before the heuristic judges, 0 to 10,000.

    Raises:
        ValueError: an argument is out of range.
    """

    def __init__(
        self,
        simulations: int = 200,
        *,
        exploration: float = EXPLORATION,
        rollout_decisions: int = ROLLOUT_DECISIONS,
    ) -> None:
        super().__init__()
        self.simulations = checked_count(simulations, "simulations", 1, MOST_SIMULATIONS)
        self.rollout_decisions = checked_count(rollout_decisions, "rollout_decisions", 0, MOST_ROLLOUT_DECISIONS)
        if not 0.0 <= exploration < np.inf:
            raise ValueError(f"exploration must be 0 or a positive number, not {exploration!r}")
        self.exploration = float(exploration)
        self.name = f"mcts:{simulations}"

    def best_actions(self, position: Position) -> NDArray[np.int64]:
        """The most visited action; several only if visits and values are equal.

        Raises:
            IllegalMoveError: the game is over, or a throw is due.
        """
        actions, visits, values = self._search(position)
        return np.sort(actions[_is_best(visits, values)])

    def policy(self, position: Position) -> dict[str, float]:
        """The share of visits of each legal move.

        Raises:
            IllegalMoveError: the game is over, or a throw is due.
        """
        actions, visits, _ = self._search(position)
        weights = np.zeros(position.ruleset.num_actions)
        weights[actions] = visits / visits.sum()
        return self.by_move(position, weights)

    def value(self, position: Position) -> float:
        """The mean result of the move it would play, for the mover.

        Raises:
            IllegalMoveError: the game is over, or a throw is due.
        """
        _, visits, values = self._search(position)
        return float(values[_is_best(visits, values)][0])

    def _search(self, position: Position) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """(n,) legal actions, their visits and their mean values for the mover (0 where never visited)."""
        deciding_actions(position)
        ruleset, (state, history) = position.ruleset, position.rows
        actions = np.empty(ruleset.num_actions, np.int32)
        visits = np.empty(ruleset.num_actions, np.int64)
        totals = np.empty(ruleset.num_actions)
        count = search_moves(
            kernel_table(ruleset.kernels), ruleset.params, ruleset.odds, state, history,
            self.simulations, self.exploration, self.rollout_decisions, self._search_word(), actions, visits, totals,
        )  # fmt: skip
        sign = -1.0 if position.to_move else 1.0
        values = sign * totals[:count] / np.maximum(visits[:count], 1)
        return actions[:count].astype(np.int64), visits[:count], values


def _is_best(visits: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(n,) bool: most visited, and of those of the highest value."""
    most = visits == visits.max()
    best: NDArray[np.bool_] = most & (values == values[most].max())
    return best
