"""The trees of many positions in common arrays: growing them, telling results upwards, proving what is certain.

A node is a position in which a seat decides or a throw is due; what ends the game is no node but an edge with its
exact value. An edge is an action or an outcome of the throw. All values are natural's utilities: clipped payoff plus
weighted margin, so nothing changes its sign on the way up, and a side that decides twice running needs no care.

Positions are kept for decisions only, one row each in the order in which they were reached: the rows that wait for the
network lie side by side and are handed to it as they are. What lies behind a throw is played again from the last
decision. Histories are true ones, so repetitions end games in the tree as they do on the board.

An edge whose value is certain has a verdict: the game is over there, or all that follows is. A decision is won by one
won edge, and certain when all its edges are; a throw is certain when all its outcomes are.

Letters: N trees, R rows, V nodes, E edges, A actions, S and H sizes of a state and a history row.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import boolean, float32, float64, int16, int32, int64, types, uint64
from numpy.typing import NDArray

from tradgames_env.rules.compiling import kernel
from tradgames_env.rules.contract import CHANCE, MARGIN, MOVER, OUTCOME, PAYOFF, RUNNING
from tradgames_env.rules.ruleset import Ruleset
from tradgames_env.rules.table import APPLY_SLOT, CHANCE_SLOT, LEGAL_SLOT, apply_at, chance_at, kernel_table, legal_at

FIRST, COUNT, TRIED, SIMULATIONS, ROW, SIDE, KIND, PARENT, PARENT_EDGE, CERTAIN, VERDICT = range(11)
"""Columns of ``nodes``: first edge, number of edges, how many of them were tried (at decisions below the root these
stand first), simulations that went on from here, row or NONE, side that decides, kind of throw or 0, the node and the
edge that led here or NONE, how many edges are certain, and the node's own verdict."""
NODE_COLUMNS = 16
RAW, TRIED_PRIOR, EXACT = range(3)
"""Columns of ``node_values``: the network's utility, sum of the priors of the tried edges, value if certain."""
CHILD, VISITS, EDGE_VERDICT = range(3)
"""Columns of ``edges``: the node it leads to or NONE, simulations through it, its verdict."""
TOTAL, VALUE = range(2)
"""Columns of ``edge_values``: sum of utilities, their mean or exact value."""
USED_NODES, USED_EDGES, USED_ROWS, JUDGED_ROWS = range(4)
"""Entries of ``used``; rows from JUDGED_ROWS on wait for the network."""
LEFT, ROUNDS, CONSIDERED, NEXT = range(4)
"""Columns of ``plans``: simulations left, rounds until fewer are considered, how many are, the next of this round."""
C_VISIT, C_SCALE, MARGIN_SHARE = range(3)
"""Entries of ``settings``; the last is the utility of a margin of 1."""

NONE = -1
OPEN, NATURAL_WON, BLACK_WON, SETTLED = range(4)
"""Verdicts: not certain; certain, and won by a side; certain, but drawn or a mixture."""
LEAST_AHEAD = 1e-9
"""Outcomes that differ by less are equally due, whatever their probabilities were rounded to."""
FULL, NO_LEAF = -2, -1
"""In place of a row: there is no room for more nodes or edges; the simulation needs no network."""


class Trees(NamedTuple):
    """N trees and what they grow by."""

    kernels: Any
    """See ``rules.table.kernel_table``."""
    params: Any
    odds: Any
    settings: Any
    """(3,) float64, see C_VISIT."""
    states: Any
    """(R, S) int16."""
    histories: Any
    """(R, H) uint64."""
    row_nodes: Any
    """(R,) int32, the node of each row."""
    nodes: Any
    """(V, 16) int32, see FIRST; nodes 0 to N - 1 are the roots."""
    node_values: Any
    """(V, 3) float64, see RAW."""
    actions: Any
    """(E,) int32, action or outcome of each edge."""
    priors: Any
    """(E,) float64, the policy's or the throw's probability of each edge."""
    edges: Any
    """(E, 3) int32, see CHILD; not written before an edge is tried, since most never are."""
    edge_values: Any
    """(E, 2) float64, see TOTAL; as ``edges``."""
    used: Any
    """(4,) int64, see USED_NODES."""
    plans: Any
    """(N, 4) int32, see LEFT."""
    candidates: Any
    """(N, A) int32: edges of the root, those that are considered first."""
    gumbels: Any
    """(N, A) float64: for each edge of the root its noise plus the logarithm of its prior."""
    pending: Any
    """(V,) int32, scratch: edges since the last decision."""
    scores: Any
    """(A,) float64, scratch; at least as long as a throw has outcomes."""


TREES: Any = types.NamedTuple(  # type: ignore[no-untyped-call]
    (
        uint64[::1], int32[::1], float64[:, ::1], float64[::1], int16[:, ::1], uint64[:, ::1], int32[::1],
        int32[:, ::1], float64[:, ::1], int32[::1], float64[::1], int32[:, ::1], float64[:, ::1], int64[::1],
        int32[:, ::1], int32[:, ::1],
        float64[:, ::1], int32[::1], float64[::1],
    ),
    Trees,
)  # fmt: skip

_STATE, _HISTORY = int16[::1], uint64[::1]


def plant(
    ruleset: Ruleset,
    settings: NDArray[np.float64],
    states: NDArray[np.int16],
    histories: NDArray[np.uint64],
    rows: int,
    spare: Trees | None = None,
) -> Trees:
    """Trees of N roots, without edges yet.

    Args:
        ruleset: the game.
        settings: (3,) float64, see C_VISIT.
        states: (N, S) int16, decisions.
        histories: (N, H) uint64.
        rows: decisions there is room for, the roots included.
        spare: trees of the same ruleset and settings that are not needed any more; if large enough, they are used
            again, because touching fresh memory takes as long as the search.
    """
    count = len(states)
    is_enough = spare is not None and len(spare.plans) >= count and len(spare.states) >= rows
    trees = spare if spare is not None and is_enough else _allocated(ruleset, settings, count, rows)
    trees.used[:] = 0
    trees.plans[:] = 0
    trees.states[:count] = states
    trees.histories[:count] = histories
    return trees


def _allocated(ruleset: Ruleset, settings: NDArray[np.float64], count: int, rows: int) -> Trees:
    widest = max(ruleset.num_actions, ruleset.odds.shape[1])
    # A guess at what will be needed, see ``enlarge``.
    nodes, edges = 2 * rows + widest, 32 * rows + 2 * widest
    return Trees(
        kernels=kernel_table(ruleset.kernels),
        params=ruleset.params,
        odds=ruleset.odds,
        settings=settings,
        states=np.empty((rows, ruleset.state_size), np.int16),
        histories=np.empty((rows, ruleset.history_size), np.uint64),
        row_nodes=np.empty(rows, np.int32),
        nodes=np.empty((nodes, NODE_COLUMNS), np.int32),
        node_values=np.empty((nodes, 3)),
        actions=np.empty(edges, np.int32),
        priors=np.empty(edges),
        edges=np.empty((edges, 3), np.int32),
        edge_values=np.empty((edges, 2)),
        used=np.empty(4, np.int64),
        plans=np.empty((count, 4), np.int32),
        candidates=np.empty((count, ruleset.num_actions), np.int32),
        gumbels=np.empty((count, ruleset.num_actions)),
        pending=np.empty(nodes, np.int32),
        scores=np.empty(widest),
    )


def enlarge(trees: Trees) -> Trees:
    """The same trees with twice the room for nodes and edges."""
    grown = ("nodes", "node_values", "actions", "priors", "edges", "edge_values", "pending")
    return trees._replace(**{name: _doubled(getattr(trees, name)) for name in grown})


def _doubled(array: NDArray[Any]) -> NDArray[Any]:
    larger = np.empty((2 * len(array), *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


@kernel(float64(_STATE, float64), forceinline=True)
def final_utility(state, margin_share):  # type: ignore[no-untyped-def]
    """Natural's utility of a game that is over."""
    return min(max(np.float64(state[PAYOFF]), -1.0), 1.0) + margin_share * state[MARGIN]


@kernel(int64(_STATE), forceinline=True)
def final_verdict(state):  # type: ignore[no-untyped-def]
    """The verdict on a game that is over."""
    if state[PAYOFF] == 0:
        return SETTLED
    return NATURAL_WON if state[PAYOFF] > 0 else BLACK_WON


@kernel(types.void(TREES, int64), forceinline=True)
def _clear_edge(trees, edge):  # type: ignore[no-untyped-def]
    trees.edges[edge, CHILD] = NONE
    trees.edges[edge, VISITS] = 0
    trees.edges[edge, EDGE_VERDICT] = OPEN
    trees.edge_values[edge, TOTAL] = 0.0
    trees.edge_values[edge, VALUE] = 0.0


@kernel(types.void(TREES, int64, int64), forceinline=True)
def _lift_best(trees, node, tried):  # type: ignore[no-untyped-def]
    """Let the untried edge of the highest prior, of equal ones that of the lowest action, stand behind the tried."""
    actions, priors = trees.actions, trees.priors
    place = np.uint64(trees.nodes[node, FIRST] + tried)
    end = np.uint64(trees.nodes[node, FIRST] + trees.nodes[node, COUNT])
    if place >= end:
        return
    best = place
    for edge in range(place + np.uint64(1), end):
        if priors[edge] > priors[best] or (priors[edge] == priors[best] and actions[edge] < actions[best]):
            best = np.uint64(edge)
    action, prior = actions[best], priors[best]
    actions[best], priors[best] = actions[place], priors[place]
    actions[place], priors[place] = action, prior
    _clear_edge(trees, np.int64(place))


@kernel(types.void(TREES, int64, int64, float64), forceinline=True)
def back_up(trees, node, edge, value):  # type: ignore[no-untyped-def]
    """Count a simulation of natural's utility ``value`` at an edge of ``node`` and at all that led there."""
    nodes, edges, values = trees.nodes, trees.edges, trees.edge_values
    while node != NONE:
        edges[edge, VISITS] += 1
        values[edge, TOTAL] += value
        if edges[edge, EDGE_VERDICT] == OPEN:
            values[edge, VALUE] = values[edge, TOTAL] / edges[edge, VISITS]
        nodes[node, SIMULATIONS] += 1
        edge = np.int64(nodes[node, PARENT_EDGE])
        node = np.int64(nodes[node, PARENT])


@kernel(types.void(TREES, int64, int64))
def _judge_decision(trees, node, edge):  # type: ignore[no-untyped-def]
    """Write the verdict on a decision of which ``edge`` has become certain, if there is one now."""
    nodes, edges, values = trees.nodes, trees.edges, trees.edge_values
    won = BLACK_WON if nodes[node, SIDE] else NATURAL_WON
    if edges[edge, EDGE_VERDICT] != won and nodes[node, CERTAIN] < nodes[node, COUNT]:
        return
    sign = -1.0 if nodes[node, SIDE] else 1.0
    best = edge
    if edges[edge, EDGE_VERDICT] != won:
        for other in range(nodes[node, FIRST], nodes[node, FIRST] + nodes[node, COUNT]):
            if sign * values[other, VALUE] > sign * values[best, VALUE]:
                best = other
    nodes[node, VERDICT] = edges[best, EDGE_VERDICT]
    trees.node_values[node, EXACT] = values[best, VALUE]


@kernel(types.void(TREES, int64, int64))
def _judge_throw(trees, node, edge):  # type: ignore[no-untyped-def]
    """Write the verdict on a throw of which ``edge`` has become certain, if all outcomes are."""
    nodes, edges, values = trees.nodes, trees.edges, trees.edge_values
    if nodes[node, CERTAIN] < nodes[node, COUNT]:
        return
    verdict, mean = edges[edge, EDGE_VERDICT], 0.0
    for other in range(nodes[node, FIRST], nodes[node, FIRST] + nodes[node, COUNT]):
        mean += trees.priors[other] * values[other, VALUE]
        if edges[other, EDGE_VERDICT] != verdict:
            verdict = SETTLED
    nodes[node, VERDICT] = verdict
    trees.node_values[node, EXACT] = mean


@kernel(types.void(TREES, int64, int64, float64))
def _note_better(trees, node, verdict, value):  # type: ignore[no-untyped-def]
    """A decision that is won may be won by a larger margin."""
    exact = trees.node_values[node, EXACT]
    sign = -1.0 if trees.nodes[node, SIDE] else 1.0
    if verdict == trees.nodes[node, VERDICT] and sign * value > sign * exact:
        trees.node_values[node, EXACT] = value


@kernel(types.void(TREES, int64, int64, int64, float64))
def prove(trees, node, edge, verdict, value):  # type: ignore[no-untyped-def]
    """Note that an edge of ``node`` is certain, and all that follows from it upwards."""
    nodes, edges = trees.nodes, trees.edges
    while True:
        edges[edge, EDGE_VERDICT] = verdict
        trees.edge_values[edge, VALUE] = value
        nodes[node, CERTAIN] += 1
        if nodes[node, VERDICT] != OPEN:
            _note_better(trees, node, verdict, value)
            return
        if nodes[node, KIND] == 0:
            _judge_decision(trees, node, edge)
        else:
            _judge_throw(trees, node, edge)
        verdict, value = np.int64(nodes[node, VERDICT]), trees.node_values[node, EXACT]
        edge, node = np.int64(nodes[node, PARENT_EDGE]), np.int64(nodes[node, PARENT])
        if verdict == OPEN or node == NONE:
            return


@kernel(int64(TREES, _STATE, int64, int64, int64), forceinline=True)
def _new_node(trees, state, parent, parent_edge, row):  # type: ignore[no-untyped-def]
    """The next node, for the position ``state``, without edges."""
    nodes, used = trees.nodes, trees.used
    node = used[USED_NODES]
    used[USED_NODES] = node + 1
    nodes[node, FIRST] = used[USED_EDGES]
    nodes[node, COUNT] = 0
    nodes[node, TRIED] = 0
    nodes[node, SIMULATIONS] = 0
    nodes[node, ROW] = row
    nodes[node, SIDE] = state[MOVER]
    nodes[node, KIND] = state[CHANCE]
    nodes[node, PARENT] = parent
    nodes[node, PARENT_EDGE] = parent_edge
    nodes[node, CERTAIN] = 0
    nodes[node, VERDICT] = OPEN
    trees.node_values[node, RAW] = 0.0
    trees.node_values[node, TRIED_PRIOR] = 0.0
    return node


@kernel(int64(TREES, int64, int64, int64), forceinline=True)
def _open_decision(trees, row, parent, parent_edge):  # type: ignore[no-untyped-def]
    """A node with its legal actions for the decision in ``row``."""
    state, used = trees.states[row], trees.used
    node = _new_node(trees, state, parent, parent_edge, row)
    actions = trees.actions[used[USED_EDGES] :]
    count = legal_at(trees.kernels[LEGAL_SLOT])(trees.params, state, trees.histories[row], actions)
    trees.nodes[node, COUNT] = count
    used[USED_EDGES] += count
    trees.row_nodes[row] = node
    used[USED_ROWS] = row + 1
    return node


@kernel(int64(TREES, _STATE, int64, int64), forceinline=True)
def _open_throw(trees, state, parent, parent_edge):  # type: ignore[no-untyped-def]
    """A node with an edge for each outcome of the throw that is due."""
    node = _new_node(trees, state, parent, parent_edge, NONE)
    odds, kind, first = trees.odds, np.int64(state[CHANCE]) - 1, trees.used[USED_EDGES]
    below, outcome = 0.0, 0
    while below < 1.0:
        # What stands behind the last outcome but one is above 1, see ``chance.odds_table``.
        upper = min(odds[kind, outcome], 1.0)
        trees.actions[first + outcome] = outcome
        trees.priors[first + outcome] = upper - below
        _clear_edge(trees, first + outcome)
        below = upper
        outcome += 1
    trees.nodes[node, COUNT] = outcome
    trees.used[USED_EDGES] = first + outcome
    return node


@kernel(int64(TREES, int64), forceinline=True)
def due_outcome(trees, node):  # type: ignore[no-untyped-def]
    """The outcome of a throw that is furthest behind its share of the simulations."""
    first, count = trees.nodes[node, FIRST], trees.nodes[node, COUNT]
    simulations = trees.nodes[node, SIMULATIONS] + 1.0
    best, most = np.int64(first), -1.0e9
    for edge in range(first, first + count):
        behind = trees.priors[edge] * simulations - trees.edges[edge, VISITS]
        if behind > most + LEAST_AHEAD:
            best, most = np.int64(edge), behind
    return best


@kernel(boolean(TREES), forceinline=True)
def _has_room(trees):  # type: ignore[no-untyped-def]
    """Whether one node of any kind can be added."""
    used = trees.used
    has_nodes = used[USED_NODES] < trees.nodes.shape[0]
    return has_nodes and used[USED_EDGES] + trees.scores.shape[0] <= trees.edges.shape[0]


@kernel(types.void(TREES, int64, _STATE, _HISTORY), forceinline=True)
def _copy_position(trees, row, out_state, out_history):  # type: ignore[no-untyped-def]
    # Assigning slices would need numba's reference counts.
    for cell in range(out_state.shape[0]):
        out_state[cell] = trees.states[row, cell]
    for cell in range(out_history.shape[0]):
        out_history[cell] = trees.histories[row, cell]


@kernel(types.void(TREES, int64, int64), forceinline=True)
def _replay(trees, row, length):  # type: ignore[no-untyped-def]
    """Play the ``length`` pending edges, an action and the throws that followed it, in the position of ``row``."""
    state, history = trees.states[row], trees.histories[row]
    apply_at(trees.kernels[APPLY_SLOT])(trees.params, state, history, np.int64(trees.actions[trees.pending[0]]))
    for k in range(1, length):
        outcome = np.int64(trees.actions[trees.pending[k]])
        chance_at(trees.kernels[CHANCE_SLOT])(trees.params, state, history, outcome)


@kernel(types.void(TREES, int64, int64), forceinline=True)
def _note_tried(trees, node, edge):  # type: ignore[no-untyped-def]
    """Count an edge among the tried ones of a decision below the root."""
    nodes = trees.nodes
    if nodes[node, PARENT] != NONE and nodes[node, KIND] == 0:
        nodes[node, TRIED] += 1
        trees.node_values[node, TRIED_PRIOR] += trees.priors[edge]
        _lift_best(trees, node, np.int64(nodes[node, TRIED]))


@kernel(int64(TREES, int64, int64, int64, int64), forceinline=True)
def grow(trees, base, node, edge, length):  # type: ignore[no-untyped-def]
    """Add what an edge that was never tried leads to.

    Args:
        trees: all of them.
        base: row of the last decision.
        node: where the edge starts.
        edge: the edge.
        length: pending edges since that decision, this one included.

    Returns:
        The row of a new decision, NO_LEAF where the game is over (which is then backed up), FULL if nothing was done.
    """
    used, edges = trees.used, trees.edges
    row, used_nodes, used_edges = used[USED_ROWS], used[USED_NODES], used[USED_EDGES]
    state, history = trees.states[row], trees.histories[row]
    _copy_position(trees, base, state, history)
    _replay(trees, row, length)
    above, above_edge = node, edge
    while state[OUTCOME] == RUNNING and _has_room(trees):
        if state[CHANCE] == 0:
            _note_tried(trees, node, edge)
            edges[above_edge, CHILD] = _open_decision(trees, row, above, above_edge)
            return row
        throw = _open_throw(trees, state, above, above_edge)
        edges[above_edge, CHILD] = throw
        above, above_edge = throw, due_outcome(trees, throw)
        chance_at(trees.kernels[CHANCE_SLOT])(trees.params, state, history, np.int64(trees.actions[above_edge]))
    if state[OUTCOME] == RUNNING:
        edges[edge, CHILD] = NONE
        used[USED_NODES], used[USED_EDGES] = used_nodes, used_edges
        return FULL
    _note_tried(trees, node, edge)
    value = final_utility(state, trees.settings[MARGIN_SHARE])
    prove(trees, above, above_edge, final_verdict(state), value)
    back_up(trees, above, above_edge, value)
    return NO_LEAF


@kernel(types.void(TREES, int64, float32[::1], float32), forceinline=True)
def _write_priors(trees, node, logits, utility):  # type: ignore[no-untyped-def]
    """The network's answer at a node: its utility, and its policy over the legal actions."""
    actions, priors = trees.actions, trees.priors
    first = np.uint64(trees.nodes[node, FIRST])
    end = first + np.uint64(trees.nodes[node, COUNT])
    highest = -np.inf
    for edge in range(first, end):
        priors[edge] = logits[np.uint32(actions[edge])]
        highest = max(highest, priors[edge])
    total = 0.0
    for edge in range(first, end):
        priors[edge] = np.exp(priors[edge] - highest)
        total += priors[edge]
    share = 1.0 / total
    for edge in range(first, end):
        priors[edge] *= share
    trees.node_values[node, RAW] = -utility if trees.nodes[node, SIDE] else utility


@kernel(types.void(TREES, float32[:, ::1], float32[::1]))
def judge_leaves(trees, logits, utilities):  # type: ignore[no-untyped-def]
    """Give the rows that wait for the network its answers, and back them up."""
    judged = trees.used[JUDGED_ROWS]
    for k in range(utilities.shape[0]):
        node = np.int64(trees.row_nodes[judged + k])
        _write_priors(trees, node, logits[k], utilities[k])
        _lift_best(trees, node, 0)
        parent, edge = np.int64(trees.nodes[node, PARENT]), np.int64(trees.nodes[node, PARENT_EDGE])
        back_up(trees, parent, edge, trees.node_values[node, RAW])
    trees.used[JUDGED_ROWS] = judged + utilities.shape[0]


@kernel(int64(TREES, float32[:, ::1], float32[::1], _STATE, _HISTORY, int64))
def open_roots(trees, logits, utilities, state, history, begin):  # type: ignore[no-untyped-def]
    """Give the roots from ``begin`` on their edges by the network's answers, and prove those that end the game.

    However unlikely the policy holds it, a win on the spot is then known. ``state`` and ``history`` are scratch rows.

    Returns:
        The number of roots, or the root to go on with when there is more room.
    """
    for root in range(begin, utilities.shape[0]):
        if not _has_room(trees):
            return root
        _open_decision(trees, root, NONE, NONE)
        _write_priors(trees, root, logits[root], utilities[root])
        first = trees.nodes[root, FIRST]
        for edge in range(first, first + trees.nodes[root, COUNT]):
            _clear_edge(trees, np.int64(edge))
        for edge in range(first, first + trees.nodes[root, COUNT]):
            _copy_position(trees, root, state, history)
            action = np.int64(trees.actions[edge])
            apply_at(trees.kernels[APPLY_SLOT])(trees.params, state, history, action)
            if state[OUTCOME] != RUNNING:
                value = final_utility(state, trees.settings[MARGIN_SHARE])
                prove(trees, root, np.int64(edge), final_verdict(state), value)
    trees.used[JUDGED_ROWS] = utilities.shape[0]
    return utilities.shape[0]
