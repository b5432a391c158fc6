"""Playing the games that search learns from: a shard of them at a time, as a pure function.

A shard is some games in lockstep. Its task says everything: weights, settings, a seed and how the games stood; so it
may be played anywhere, and again. Each iteration plays a fixed number of decisions in every game, and games go on in
the next one. A decision becomes a sample when its game is over, or when ``horizon`` more decisions were played.

Letters: T decisions, W those of a window (the horizon's, then the T new ones), N games, A actions,
K most legal actions seen, F features that differ between the game's positions.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tradgames_env.agents.checkpoint import NetworkRecord
from tradgames_env.agents.network import PolicyValueNetwork, resolve_device
from tradgames_env.rules.chance import seed_generators
from tradgames_env.rules.contract import (
    BLACK_WINS,
    DRAW,
    MARGIN,
    MOVER,
    NATURAL_WINS,
    OUTCOME,
    PAYOFF,
    RUNNING,
    TRUNCATED,
)
from tradgames_env.rules.table import kernel_table
from training.choosers import LEARNER, Chooser, Decisions, Judge, OutlookChooser, TreeChooser, view_signs
from training.config import GameConfig, SearchConfig, SelfPlayConfig
from training.lockstep import begin_games, draw_actions, list_legal, play_moves, play_randomly, throw_games
from training.rollout import GameCounts
from training.targets import ends_within, lambda_returns

Arrays = dict[str, NDArray[Any]]
_NO_LIMIT = np.iinfo(np.int64).max
"""Decisions of a game that is not broken off."""


@dataclasses.dataclass(frozen=True, eq=False)
class ShardTask:
    """What a shard is told.

    Attributes:
        games: all that the network plays, in the order of its policy heads.
        game: place among them of the one that is played.
        network: sizes of the networks.
        weights: of the one that learns.
        policies: of past ones by number.
        drawn: numbers of those that new games may be played against.
        pool_share: share of new games against one of them.
        search: how to search.
        selfplay: how to play.
        simulations: of a full search.
        margin_weight: worth of the final margin in utilities.
        sparse_share: share of new games that begin with few pieces.
        seed: of the run, iteration, shard.
        state: what the shard gave back in the iteration before; None begins all games.
        device: where networks are evaluated.
    """

    games: tuple[GameConfig, ...]
    game: int
    network: NetworkRecord
    weights: Arrays
    policies: Mapping[int, Arrays]
    drawn: tuple[int, ...]
    pool_share: float
    search: SearchConfig
    selfplay: SelfPlayConfig
    simulations: int
    margin_weight: float
    sparse_share: float
    seed: tuple[int, int, int]
    state: Arrays | None
    device: str = "cpu"


@dataclasses.dataclass(frozen=True, eq=False)
class ShardResult:
    """What a shard gives back.

    Attributes:
        state: for its next task.
        samples: see ``training.replay``.
        counts: games that ended.
        simulations: evaluations spent in searches, about.
    """

    state: Arrays
    samples: Arrays
    counts: GameCounts
    simulations: int


def play_shard(task: ShardTask) -> ShardResult:
    """Play some decisions of every game of a shard; the same task gives the same result, bit for bit."""
    with torch.inference_mode():
        return _Shard(task).play()


class _Shard:
    """The games of a shard while they are played."""

    def __init__(self, task: ShardTask) -> None:
        self._task = task
        self._config = task.selfplay
        self._games = tuple(game.ruleset() for game in task.games)
        self._ruleset = self._games[task.game]
        self._kernels = kernel_table(self._ruleset.kernels)
        self._scale = np.float32(self._ruleset.rules.margin_scale(self._ruleset.options))
        games = task.selfplay.games
        root = np.random.SeedSequence(task.seed)
        dice_seed, search_seed, choice_seed = root.spawn(3)
        self._dice = seed_generators(dice_seed, games)[:, None].copy()
        self._rng = np.random.default_rng(choice_seed)
        judges = {number: self._judge(weights) for number, weights in {LEARNER: task.weights, **task.policies}.items()}
        self._learner = judges[LEARNER]
        self._chooser = self._make_chooser(judges, seed_generators(search_seed, games)[:, None].copy())
        self._counts = GameCounts()
        self._simulations = 0
        self._legal = np.empty((games, self._ruleset.num_actions), np.int32)
        self._legal_counts = np.empty(games, np.int64)
        self._take_up(games)

    def _judge(self, weights: Arrays) -> Judge:
        network = PolicyValueNetwork(self._task.network)
        network.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in weights.items()})
        network.to(resolve_device(self._task.device)).eval()
        return Judge(self._ruleset, network, self._task.margin_weight, self._games)

    def _make_chooser(self, judges: dict[int, Judge], words: NDArray[np.uint64]) -> Chooser:
        task = self._task
        if task.search.improver == "expectimax":
            return OutlookChooser(self._ruleset, judges, task.search, task.margin_weight, words, self._rng)
        return TreeChooser(self._ruleset, judges, task.search, task.simulations, task.margin_weight, words, self._rng)

    def _take_up(self, games: int) -> None:
        """Arrays of the games and of the window, with what the iteration before left."""
        ruleset, state = self._ruleset, self._task.state
        if state is None:
            self.states = np.zeros((games, ruleset.state_size), np.int16)
            self.histories = np.zeros((games, ruleset.history_size), np.uint64)
            self.lengths = np.zeros(games, np.int64)
            self.limits = np.full(games, _NO_LIMIT)
            self.opponents = np.full(games, LEARNER)
            self.colours = np.full(games, LEARNER)
            self._window: Arrays | None = None
            self._start(np.arange(games))
            self._spread(np.arange(games))
            return
        self.states, self.histories = state["states"].copy(), state["histories"].copy()
        self.lengths, self.limits = state["lengths"].copy(), state["limits"].copy()
        self.opponents, self.colours = state["opponents"].copy(), state["colours"].copy()
        kept = {name.removeprefix("window/"): array for name, array in state.items() if name.startswith("window/")}
        self._window = {name: self._extended(array) for name, array in kept.items()}

    def _extended(self, kept: NDArray[Any]) -> NDArray[Any]:
        new = np.zeros((self._config.decisions, *kept.shape[1:]), kept.dtype)
        return np.concatenate([kept, new])

    # -- playing -----------------------------------------------------------------------------------------------------

    def play(self) -> ShardResult:
        """Play, and settle what can be learned from."""
        for step in range(self._config.decisions):
            self._step(self._config.horizon + step)
        assert self._window is not None
        samples = self._settle(self._window)
        window = {
            f"window/{name}": np.ascontiguousarray(array[self._config.decisions :])
            for name, array in self._window.items()
        }
        state: Arrays = {
            "states": self.states,
            "histories": self.histories,
            "lengths": self.lengths,
            "limits": self.limits,
            "opponents": self.opponents,
            "colours": self.colours,
            **window,
        }
        return ShardResult(state, samples, self._counts, self._simulations)

    def _step(self, at: int) -> None:
        """One decision in every game, noted in row ``at`` of the window."""
        movers = self.states[:, MOVER].astype(np.int64)
        players = np.where(self.colours == movers, self.opponents, LEARNER)
        found = self._chooser.choose(self.states, self.histories, players)
        self._simulations += int(found.budgets.sum())
        actions, careless = self._vary(found)
        self._note(at, found, players == LEARNER, careless)
        play_moves(self._kernels, self._ruleset.params, self.states, self.histories, found.throws, actions)
        if not self._chooser.waits_for_throws:
            throw_games(
                self._kernels, self._ruleset.params, self._ruleset.odds, self.states, self.histories, self._dice
            )
        self.lengths += 1
        self._end(at)
        self._break_off(at)

    def _vary(self, found: Decisions) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The actions to play: early ones by the policy, some at random; and which are random."""
        config, games = self._config, len(self.states)
        early = (self.lengths < config.early_plies) & (found.actions >= 0) & (not self._chooser.waits_for_throws)
        careless = (self._rng.random(games) < config.random_share) & (found.actions >= 0)
        uniform = self._rng.random(games)
        self._list(found.throws)
        actions = found.actions.copy()
        draw_actions(found.policies, self._legal, self._legal_counts, uniform, early & ~careless, actions)
        places = (uniform * self._legal_counts).astype(np.int64)
        chosen = np.take_along_axis(self._legal, np.maximum(places, 0)[:, None], axis=1)[:, 0]
        return np.where(careless, chosen, actions), careless

    def _list(self, throws: NDArray[np.int64]) -> None:
        """List what is legal once the throws have shown."""
        states, histories = self.states, self.histories
        if (throws >= 0).any():
            states, histories = states.copy(), histories.copy()
            nothing = np.full(len(throws), -1)
            play_moves(self._kernels, self._ruleset.params, states, histories, throws, nothing)
        list_legal(self._kernels, self._ruleset.params, states, histories, self._legal, self._legal_counts)

    def _note(self, at: int, found: Decisions, own: NDArray[np.bool_], careless: NDArray[np.bool_]) -> None:
        expectations = self._learner.expectations(found.seen, found.features)
        shaping = np.float32(self._task.margin_weight) * expectations.margins
        width = max(1, int(self._legal_counts.max()))
        taught = found.taught & own & (self._legal_counts > 1)
        actions = np.where(taught[:, None], self._legal[:, :width], -1).astype(np.int16)
        shares = np.take_along_axis(found.policies, np.maximum(actions, 0).astype(np.int64), axis=1)
        values = np.stack([found.utilities - shaping, expectations.margins, expectations.draws], axis=1)
        expected = values.copy()
        expected[:, 0] = found.expected - shaping
        gains = np.zeros_like(values)
        gains[:, 0] = found.gains
        row = {
            "features": self._learner.evaluate.reader.own(found.features).astype(np.float16),
            "actions": actions,
            "probabilities": np.where(actions >= 0, shares, 0.0).astype(np.float16),
            "taught": taught,
            "surprises": found.surprises,
            "signs": view_signs(found.seen),
            "margins": found.seen[:, MARGIN] / self._scale,
            "values": values,
            "expected": expected,
            "gains": gains,
            "careless": careless,
            "owed": own,
            "ended": np.zeros(len(own), np.bool_),
            "finals": np.zeros_like(values),
        }
        self._write(at, row)

    def _write(self, at: int, row: Arrays) -> None:
        """Write a row of the window, which is made by the first one and widened where more actions are legal."""
        if self._window is None:
            rows = self._config.horizon + self._config.decisions
            self._window = {name: np.zeros((rows, *array.shape), array.dtype) for name, array in row.items()}
        for name, array in row.items():
            window = self._window[name]
            if array.ndim == 2 and array.shape[1] > window.shape[2]:
                missing = ((0, 0), (0, 0), (0, array.shape[1] - window.shape[2]))
                self._window[name] = window = np.pad(window, missing, constant_values=-1 if name == "actions" else 0)
            if name == "actions":
                window[at] = -1
            if array.ndim == 2:
                window[at, :, : array.shape[1]] = array
            else:
                window[at] = array

    # -- beginning and ending games --------------------------------------------------------------------------------

    def _end(self, at: int) -> None:
        """Note how games ended, and begin others in their place."""
        over = np.flatnonzero(self.states[:, OUTCOME] != RUNNING)
        if len(over) == 0:
            return
        assert self._window is not None
        ended = self.states[over]
        self._window["ended"][at, over] = True
        decided = (ended[:, OUTCOME] == NATURAL_WINS) | (ended[:, OUTCOME] == BLACK_WINS)
        self._window["finals"][at, over] = np.stack(
            [np.clip(ended[:, PAYOFF], -1, 1), ended[:, MARGIN] / self._scale, ~decided], axis=1
        )
        self._count(over, ended, decided)
        self._start(over)

    def _break_off(self, at: int) -> None:
        """Begin others in place of games that have lasted long enough; their results are not known."""
        enough = np.flatnonzero(self.lengths >= self.limits)
        if len(enough) == 0:
            return
        assert self._window is not None
        self._window["ended"][at, enough] = True
        self._window["careless"][at, enough] = True
        self._start(enough)

    def _count(self, over: NDArray[np.int64], ended: NDArray[np.int16], decided: NDArray[np.bool_]) -> None:
        counts, outcomes = self._counts, ended[:, OUTCOME]
        counts.games += len(over)
        counts.natural_wins += int((outcomes == NATURAL_WINS).sum())
        counts.black_wins += int((outcomes == BLACK_WINS).sum())
        counts.draws += int((outcomes == DRAW).sum())
        counts.truncated += int((outcomes == TRUNCATED).sum())
        counts.decisions += int(self.lengths[over].sum())
        counts.absolute_margin += float(np.abs(ended[:, MARGIN]).sum())
        against = self.opponents[over] != LEARNER
        learner_wins = np.where(self.colours[over] == 0, BLACK_WINS, NATURAL_WINS)
        scores = np.where(decided, outcomes == learner_wins, 0.5)
        counts.pool_games += int(against.sum())
        counts.pool_score += float(scores[against].sum())

    def _start(self, rows: NDArray[np.int64]) -> None:
        """Begin games: with the rules' start, random moves after it, or few pieces anywhere."""
        task, config, count = self._task, self._config, len(rows)
        opened = self._rng.random(count) < config.opening_share
        plies = np.where(opened, self._rng.integers(1, config.opening_plies + 1, count), 0)
        sparse = (self._rng.random(count) < task.sparse_share) & (self._ruleset.rules.scatter is not None)
        against = self._rng.random(count) < task.pool_share
        colours = self._rng.integers(0, 2, count)
        if task.drawn:
            numbers = self._rng.choice(np.array(task.drawn), count)
            self.opponents[rows] = np.where(against, numbers, LEARNER)
            self.colours[rows] = np.where(against, colours, LEARNER)
        else:
            self.opponents[rows] = LEARNER
            self.colours[rows] = LEARNER
        self.lengths[rows] = 0
        self.limits[rows] = np.where(sparse, config.sparse_decisions or _NO_LIMIT, _NO_LIMIT)
        ruleset = self._ruleset
        begin_games(
            self._kernels, ruleset.params, ruleset.odds, self.states, self.histories, self._dice, self._legal[0], rows,
            plies,
        )  # fmt: skip
        self._scatter(rows[sparse])

    def _spread(self, rows: NDArray[np.int64]) -> None:
        """Play random moves in games, differently many, so that they are not all in the same phase from then on.

        Games that begin together end together: for as long as a game lasts, nothing would be known of any result, and
        afterwards each iteration would teach a single phase.
        """
        if self._config.spread == 0:
            return
        plies = self._rng.integers(0, self._config.spread + 1, len(rows))
        play_randomly(
            self._kernels, self._ruleset.params, self._ruleset.odds, self.states, self.histories, self._dice,
            self._legal[0], rows, plies,
        )  # fmt: skip

    def _scatter(self, rows: NDArray[np.int64]) -> None:
        """Put few pieces anywhere in some games."""
        ruleset = self._ruleset
        if ruleset.rules.scatter is None:
            return
        for row in rows:
            self.states[row] = ruleset.rules.scatter(ruleset.options, self._rng, self._config.sparse_pieces)
            ruleset.rules.start_history(ruleset.params, self.states[row], self.histories[row])
        if len(rows):
            throw_games(self._kernels, ruleset.params, ruleset.odds, self.states, self.histories, self._dice)

    # -- what is learned ---------------------------------------------------------------------------------------------

    def _settle(self, window: Arrays) -> Arrays:
        """The samples that are due, in the order they were played; they are no longer owed."""
        targets = lambda_returns(
            window["values"], window["expected"], window["finals"], window["ended"], window["careless"],
            self._config.trace,
        )  # fmt: skip
        targets += window["gains"]
        old = np.arange(len(targets))[:, None] < self._config.decisions
        due = window["owed"] & (old | ends_within(window["ended"]))
        window["owed"] &= ~due
        signs = window["signs"][due]
        results, margins, draws = targets[due].T
        return {
            "features": window["features"][due],
            "actions": window["actions"][due],
            "probabilities": window["probabilities"][due],
            "taught": window["taught"][due],
            "surprises": window["surprises"][due],
            "results": np.clip(signs * results, -1, 1),
            "draws": np.clip(draws, 0, 1),
            "margins": signs * (margins - window["margins"][due]),
        }
