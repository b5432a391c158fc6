"""How self-play decides in many games at once, and what it notes of each decision for the network to learn from.

There are two ways: a tree search of each position in which a seat decides, and, for games of dice, a look at all throws
and moves from before the throw, so that no throw's luck enters what is learned.

Letters: N games, F features, A actions.
"""

import dataclasses
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from tradgames_env.agents.network import NetworkEvaluator, PolicyValueNetwork
from tradgames_env.rules.contract import MARGIN, MOVER
from tradgames_env.rules.ruleset import Ruleset
from tradgames_env.rules.table import kernel_table
from tradgames_env.search.evaluation import SearchResult
from tradgames_env.search.expectimax import Expectimax
from tradgames_env.search.gumbel import GumbelSearch
from training.config import SearchConfig
from training.lockstep import draw_throws, play_moves

LEARNER = -1
"""In place of the number of a past policy: the network that learns decides."""


@dataclasses.dataclass(frozen=True, eq=False)
class Expectations:
    """What a network expects at N positions, as natural sees it.

    Attributes:
        margins: (N,) float32, the final margin as a share of its scale.
        draws: (N,) float32, the probability of a draw; 0 where the network does not tell.
    """

    margins: NDArray[np.float32]
    draws: NDArray[np.float32]


class Judge:
    """A network as self-play asks it.

    Args:
        ruleset: what is played.
        network: with its weights.
        margin_weight: worth of the final margin in utilities.
        games: all that the network plays, in the order of its policy heads.
    """

    def __init__(
        self, ruleset: Ruleset, network: PolicyValueNetwork, margin_weight: float, games: Sequence[Ruleset]
    ) -> None:
        self._network = network
        self._scale = np.float32(ruleset.rules.margin_scale(ruleset.options))
        self.evaluate = NetworkEvaluator(ruleset, network, margin_weight, games)

    def expectations(self, states: NDArray[np.int16], features: NDArray[np.float32]) -> Expectations:
        """What it expects at N positions (N, S), whose features are (N, F)."""
        with torch.inference_mode():
            device = next(self._network.parameters()).device
            nobody = torch.empty(0, dtype=torch.int64, device=device)
            outputs = self._network.outputs(torch.from_numpy(features).to(device), policy_rows=nobody)
            further = outputs.margin[:, 0].cpu().numpy()
            told = outputs.value.shape[1] == 3
            draws = torch.softmax(outputs.value, dim=1)[:, 1].cpu().numpy() if told else np.zeros_like(further)
        margins = states[:, MARGIN] / self._scale + view_signs(states) * further
        return Expectations(margins.astype(np.float32), draws)


def view_signs(states: NDArray[np.int16]) -> NDArray[np.float32]:
    """(N,) float32: 1 where natural moves, -1 where black does."""
    return np.where(states[:, MOVER] == 0, np.float32(1), np.float32(-1))


@dataclasses.dataclass(frozen=True, eq=False)
class Decisions:
    """What was decided in N games, and what is to be learned from it; values and utilities as natural sees them.

    Attributes:
        throws: (N,) int64, the outcome that the throw shall show; -1 where none is due.
        actions: (N,) int64, what to play after it; -1 where no seat decides.
        seen: (N, S) int16, the positions that are learned from.
        features: (N, F) float32 of them.
        policies: (N, A) float32, the policies there.
        taught: (N,) bool, these are learned from.
        surprises: (N,) float32, how far they are from what the network said, in nats; 0 where nobody asked.
        utilities: (N,) float32 of the games' positions.
        gains: (N,) float32, by how much those of ``seen`` are higher.
        expected: (N,) float32, utilities of what the actions lead to, as far as these tell more.
        budgets: (N,) int32, evaluations spent, about.
    """

    throws: NDArray[np.int64]
    actions: NDArray[np.int64]
    seen: NDArray[np.int16]
    features: NDArray[np.float32]
    policies: NDArray[np.float32]
    taught: NDArray[np.bool_]
    surprises: NDArray[np.float32]
    utilities: NDArray[np.float32]
    gains: NDArray[np.float32]
    expected: NDArray[np.float32]
    budgets: NDArray[np.int32]


class Chooser(Protocol):
    """A way to decide."""

    waits_for_throws: bool
    """Games are left where a throw is due, instead of at decisions."""

    def choose(self, states: NDArray[np.int16], histories: NDArray[np.uint64], players: NDArray[np.int64]) -> Decisions:
        """Decide in N running games.

        Args:
            states: (N, S) int16.
            histories: (N, H) uint64.
            players: (N,) int64, which network decides: a past policy's number, or LEARNER.
        """
        ...


class TreeChooser:
    """Decides by tree search, full or fast.

    Args:
        ruleset: what is played.
        judges: networks by number.
        config: of the search.
        simulations: of a full search.
        margin_weight: worth of the final margin in utilities.
        words: (N, 1) uint64 generators of the searches, advanced in place.
        rng: draws which searches are full.
    """

    waits_for_throws = False

    def __init__(
        self,
        ruleset: Ruleset,
        judges: dict[int, Judge],
        config: SearchConfig,
        simulations: int,
        margin_weight: float,
        words: NDArray[np.uint64],
        rng: np.random.Generator,
    ) -> None:
        self._ruleset = ruleset
        self._judges = judges
        self._config = config
        self._simulations = simulations
        self._words = words
        self._rng = rng
        self._search = GumbelSearch(
            ruleset,
            considered=config.considered,
            c_visit=config.c_visit,
            c_scale=config.c_scale,
            margin_weight=margin_weight,
        )

    def choose(self, states: NDArray[np.int16], histories: NDArray[np.uint64], players: NDArray[np.int64]) -> Decisions:
        """See ``Chooser``."""
        full = (self._rng.random(len(states)) < self._config.full_share) & (players == LEARNER)
        fast = min(self._config.fast_simulations, self._simulations)
        budgets = np.where(full, self._simulations, fast).astype(np.int32)
        found = self._improve(states, histories, players, budgets)
        utilities = view_signs(states) * found.values
        return Decisions(
            throws=np.full(len(states), -1),
            actions=found.actions,
            seen=states,
            features=self._judges[LEARNER].evaluate.features(states, histories),
            policies=found.policies,
            taught=full,
            surprises=found.surprises,
            utilities=utilities,
            gains=np.zeros_like(utilities),
            expected=utilities,
            budgets=budgets,
        )

    def _improve(
        self,
        states: NDArray[np.int16],
        histories: NDArray[np.uint64],
        players: NDArray[np.int64],
        budgets: NDArray[np.int32],
    ) -> SearchResult:
        """One search for each of the networks, over the games in which it decides."""
        parts = [np.flatnonzero(players == number) for number in np.unique(players)]
        results = []
        for rows in parts:
            judge = self._judges[int(players[rows[0]])]
            words = self._words[rows, 0]
            results.append(self._search.improve(judge.evaluate, states[rows], histories[rows], budgets[rows], words))
            self._words[rows, 0] = words
        if len(parts) == 1:
            return results[0]
        order = np.argsort(np.concatenate(parts))
        fields = (field.name for field in dataclasses.fields(SearchResult))
        return SearchResult(*(np.concatenate([getattr(result, name) for result in results])[order] for name in fields))


class OutlookChooser:
    """Decides in games of dice by the expected values over all throws and moves, from before the throw.

    Mostly the position before the throw is learned from; in some games it is the one after it, with the policy made of
    its moves' values.

    Args:
        ruleset: what is played.
        judges: networks by number; only the one that learns plays.
        config: of the search.
        margin_weight: worth of the final margin in utilities.
        words: (N, 1) uint64 generators of the throws, advanced in place.
        rng: draws which decisions are learned from.
    """

    waits_for_throws = True

    def __init__(
        self,
        ruleset: Ruleset,
        judges: dict[int, Judge],
        config: SearchConfig,
        margin_weight: float,
        words: NDArray[np.uint64],
        rng: np.random.Generator,
    ) -> None:
        self._ruleset = ruleset
        self._judge = judges[LEARNER]
        self._config = config
        self._words = words
        self._rng = rng
        self._search = Expectimax(ruleset, plies=1, temperature=config.temperature, margin_weight=margin_weight)

    def choose(self, states: NDArray[np.int16], histories: NDArray[np.uint64], players: NDArray[np.int64]) -> Decisions:
        """See ``Chooser``."""
        evaluate = self._judge.evaluate
        outlook = self._search.look(self._value, states, histories)
        throws = np.empty(len(states), np.int64)
        draw_throws(self._ruleset.odds, states, self._words, throws)
        branches = outlook.root_heads[:-1] + np.maximum(throws, 0)
        signs = np.where(outlook.movers[branches] == 0, np.float32(1), np.float32(-1))
        leaves = outlook.best[branches]
        utilities = view_signs(states) * outlook.values
        expected = signs * outlook.branch_values[branches]
        decides = outlook.decided[branches]
        taught = decides & (self._rng.random(len(states)) < self._config.full_share)
        seen, seen_histories = self._after_throws(states, histories, np.where(taught, throws, -1))
        return Decisions(
            throws=throws,
            actions=np.where(decides, outlook.actions[leaves], -1).astype(np.int64),
            seen=seen,
            features=evaluate.features(seen, seen_histories),
            policies=self._search.policies(outlook)[branches],
            taught=taught,
            surprises=np.zeros(len(states), np.float32),
            utilities=utilities,
            gains=np.where(taught, expected - utilities, np.float32(0)),
            expected=expected,
            budgets=np.diff(outlook.branch_heads[outlook.root_heads]).astype(np.int32),
        )

    def _value(
        self, states: NDArray[np.int16], histories: NDArray[np.uint64]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Utilities of positions, and no logits: nobody asks for them where values alone decide."""
        return np.empty((len(states), 0), np.float32), self._judge.evaluate.utilities(states, histories)

    def _after_throws(
        self, states: NDArray[np.int16], histories: NDArray[np.uint64], throws: NDArray[np.int64]
    ) -> tuple[NDArray[np.int16], NDArray[np.uint64]]:
        seen, seen_histories = states.copy(), histories.copy()
        nothing = np.full(len(states), -1)
        play_moves(kernel_table(self._ruleset.kernels), self._ruleset.params, seen, seen_histories, throws, nothing)
        return seen, seen_histories
