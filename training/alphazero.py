"""Training by search, to be read from top to bottom: play with search, keep the samples, learn from them, again.

Self-play is split into shards, pure functions that any engine computes. Everything random follows from the seed, the
iteration and the shard, never from who plays where, so a run gives the same weights on any number of workers, and a
run that was killed goes on as if it never had been.

A network may learn several games: each has its own shards and samples, and every gradient step takes of all of them.
"""

import concurrent.futures
import dataclasses
import itertools
import pathlib
import time
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from tradgames_env.agents.checkpoint import NetworkRecord
from tradgames_env.agents.layout import InputLayout
from tradgames_env.agents.network import PolicyValueNetwork, resolve_device
from tradgames_env.processors import cores
from training.against_perfect import AgainstPerfect
from training.checkpoint import write_checkpoint
from training.config import AlphaZeroTrainConfig, ConfigError, LearnedGameConfig
from training.engines import Engine, open_engine, torch_threads
from training.learner import Learner, Subject
from training.metrics import game_metrics
from training.ranks import ALONE, Ranks
from training.replay import Replay, merge, policy_weights
from training.rollout import sum_counts
from training.run import Run, joined, linear, part_of, shaping_weight
from training.selfplay import Arrays, ShardResult, ShardTask, play_shard

REPLAY_FOLDER = "replay"
_WEIGHTS, _ORDER = 0, 1
_FOR_ONE_THREAD = 100_000
"""Numbers of a network below which threads wait for each other longer than they compute."""


@dataclasses.dataclass(eq=False)
class _Game:
    """One of the games of a run.

    Attributes:
        config: what to do.
        prefix: of its metrics; none where it is the only game.
        place: of its files in the folder of the run, and of what is noted of them.
        replay: its samples.
        shards: what its shards gave back; None before their games began.
        against_perfect: measures it, where there is a table.
    """

    config: LearnedGameConfig
    prefix: str
    place: str
    replay: Replay
    shards: list[Arrays | None]
    against_perfect: AgainstPerfect

    @classmethod
    def begin(cls, config: AlphaZeroTrainConfig, number: int, run_dir: pathlib.Path) -> Self:
        """The game of that number at the start of a run."""
        game, rulesets = config.learned()[number], config.rulesets()
        alone = len(rulesets) == 1
        prefix = "" if alone else f"{game.label}/"
        place = REPLAY_FOLDER if alone else f"{REPLAY_FOLDER}/{game.label}"
        replay = Replay(run_dir / place, game.replay.window)
        return cls(game, prefix, place, replay, [None] * game.selfplay.shards, AgainstPerfect(number, rulesets))

    @property
    def ready(self) -> bool:
        """Whether there are enough samples to learn from."""
        return len(self.replay) >= max(1, self.config.replay.fewest)

    @property
    def decisions(self) -> int:
        """Of an iteration."""
        selfplay = self.config.selfplay
        return selfplay.shards * selfplay.games * selfplay.decisions

    def simulations(self, progress: float) -> int:
        """Of a full search."""
        search = self.config.search
        return round(linear(search.start_simulations or search.simulations, search.simulations, progress))

    def window(self, progress: float) -> int:
        """Newest samples that are drawn from."""
        return round(linear(self.config.replay.first_window, self.config.replay.window, progress))

    def schedules(self, progress: float) -> dict[str, float]:
        """The metrics of what follows from the progress alone."""
        return {
            "data/window": float(min(len(self.replay), self.window(progress))),
            "schedule/shaping": shaping_weight(self.config.shaping, progress),
            "schedule/simulations": float(self.simulations(progress)),
        }

    def keep(self, iteration: int, results: list[ShardResult], surprise_share: float) -> dict[str, float]:
        """Write the new samples of all shards to the replay, and report."""
        self.shards = [result.state for result in results]
        samples = merge([result.samples for result in results])
        taught, surprises = samples["taught"], samples["surprises"]
        stored = {name: array for name, array in samples.items() if name not in ("taught", "surprises")}
        stored["weights"] = policy_weights(taught, surprises, surprise_share)
        self.replay.add(iteration, stored)
        return {
            **game_metrics(sum_counts([result.counts for result in results])),
            "data/learned_share": len(samples["results"]) / self.decisions,
            "search/surprise": _mean_where(surprises, taught),
        }


class AlphaZeroRun(Run):
    """A run while it goes on.

    Args:
        config: what to do.
        run_dir: folder of the run.
        say: gets one line when something unusual happens.
        ranks: the processes that learn together.

    Raises:
        ConfigError: the network would be too large.
        EngineError: the engine cannot be opened.
    """

    title = "search and self-play"
    advice = "A smaller learner.learning_rate or learner.max_grad_norm"

    def __init__(
        self,
        config: AlphaZeroTrainConfig,
        run_dir: pathlib.Path,
        say: Callable[[str], None],
        ranks: Ranks = ALONE,
    ) -> None:
        super().__init__(config, run_dir, ranks)
        self._config = config
        self._say = say
        rulesets = config.rulesets()
        try:
            record = NetworkRecord.for_games(
                rulesets, config.network.width, config.network.blocks, trunk=config.network.trunk, value="wdl"
            )
        except ValueError as error:
            raise ConfigError(f"{error}; give a smaller network.width or network.blocks") from None
        network = PolicyValueNetwork(record)
        seed = np.random.SeedSequence((config.seed, _WEIGHTS)).generate_state(1)[0]
        network.initialise(torch.Generator().manual_seed(int(seed)))
        layout = InputLayout.of(rulesets, whole_planes=record.trunk == "conv")
        subjects = [Subject(ruleset, layout, config.learner.mirror, config.learner.turns) for ruleset in rulesets]
        self.learner = Learner(network.to(resolve_device(config.device)), config.learner, subjects, ranks)
        self._games = [_Game.begin(config, number, run_dir) for number in range(len(rulesets))]
        self._policies: dict[int, Arrays] = {}
        self._learning_seconds = 0.0
        self._ended = 0
        self._background = concurrent.futures.ThreadPoolExecutor(1)
        self._engine = self._open_engine() if ranks.first else None

    def _open_engine(self) -> Engine:
        config = self._config.selfplay
        workers = config.workers or self._config.threads or cores()
        workers = min(workers, self._num_shards())
        return open_engine(config.engine, workers, address=config.address, say=self._say)

    # -- an iteration ------------------------------------------------------------------------------------------------

    def iterate(self) -> dict[str, float]:
        """Play with search, learn from it, and report."""
        progress = self.progress
        started = time.perf_counter()
        overlap = self._config.selfplay.overlap
        results = self._begin_play(self._engine, progress) if self._engine else None
        metrics = self._learn(progress) if overlap else {}
        report = self._end_play(results, started) if results else {}
        self._share_samples()
        if not overlap:
            metrics = self._learn(progress)
        learned = time.perf_counter()
        self.iteration += 1
        self.steps += self._decisions()
        self.minutes += (learned - started) / 60.0
        self.save_if_due()
        for game in self._games:
            game.replay.forget(self.saved.iterations()[0])
        self.minutes += (time.perf_counter() - learned) / 60.0
        self.minutes = self.ranks.of_first(self.minutes)
        seconds = learned - started
        return {
            "iteration": self.iteration,
            "steps": self.steps,
            "minutes": self.minutes,
            "progress": self.progress,
            "speed/decisions_per_second": self._decisions() / seconds,
            "speed/games_per_second": self._ended / seconds,
            "speed/update_share": self._learning_seconds / seconds,
            **report,
            **self._of_games([game.schedules(progress) for game in self._games]),
            **metrics,
            **self._of_games([game.against_perfect.measure(self._playing_network()) for game in self._games]),
        }

    def _of_games(self, metrics: Sequence[dict[str, float]]) -> dict[str, float]:
        """The metrics of each game, and, of several, the means of those that all of them have."""
        if len(metrics) == 1:
            return metrics[0]
        common = [name for name in metrics[0] if all(name in of_game for of_game in metrics)]
        means = {name: sum(of_game[name] for of_game in metrics) / len(metrics) for name in common}
        each = zip(self._games, metrics, strict=True)
        return means | {game.prefix + name: number for game, of_game in each for name, number in of_game.items()}

    def _decisions(self) -> int:
        """Of an iteration."""
        return sum(game.decisions for game in self._games)

    def _num_shards(self) -> int:
        return sum(len(game.shards) for game in self._games)

    def _begin_play(self, engine: Engine, progress: float) -> Callable[[], list[ShardResult]]:
        """Begin to play all shards; who asks for the results waits for them.

        Everything is in the tasks, so that learning meanwhile changes nothing.
        """
        self._freeze()
        tasks = self._tasks(progress)

        def play() -> list[ShardResult]:
            return list(engine.map(play_shard, tasks))

        selfplay = self._config.selfplay
        # In this process, two that compute at once would only share torch's settings.
        if not selfplay.overlap or selfplay.engine == "serial":
            return play
        return self._background.submit(play).result

    def _end_play(self, play: Callable[[], list[ShardResult]], started: float) -> dict[str, float]:
        """Wait for all shards, keep the samples, and report."""
        results = play()
        seconds = time.perf_counter() - started
        simulations = sum(result.simulations for result in results)
        self._ended = sum(result.counts.games for result in results)
        return {"speed/simulations_per_second": simulations / seconds, **self._keep(results)}

    def _share_samples(self) -> None:
        """Let processes that learn along read what this one has played."""
        if self.ranks.count == 1:
            return
        for game in self._games:
            game.replay.settle()
        self.ranks.of_first(0.0)
        if not self._engine:
            for game in self._games:
                game.replay.follow(self.iteration + 1)

    def _freeze(self) -> None:
        """Keep the weights that play as a past policy, now and then; let go of those that nobody plays any more."""
        wanted = any(game.config.pool.share > 0.0 for game in self._games)
        if not wanted or self.iteration % self._config.pool.every != 0:
            return
        self._policies[self.iteration] = self.learner.averaged()
        shards = [shard for game in self._games for shard in game.shards]
        playing = {int(number) for shard in shards if shard for number in np.unique(shard["opponents"])}
        self._policies = {
            number: weights for number, weights in self._policies.items() if number in playing | set(self._drawn())
        }

    def _drawn(self) -> tuple[int, ...]:
        return tuple(sorted(self._policies)[-self._config.pool.capacity :])

    def _tasks(self, progress: float) -> list[ShardTask]:
        weights, device = self.learner.averaged(), str(resolve_device(self._config.device))
        tasks: list[ShardTask] = []
        for place, game in enumerate(self._games):
            config = game.config
            selfplay = config.selfplay
            for state in game.shards:
                task = ShardTask(
                    games=self._config.learned(),
                    game=place,
                    network=self.learner.network.record,
                    weights=weights,
                    policies=self._policies if config.pool.share > 0.0 else {},
                    drawn=self._drawn(),
                    pool_share=config.pool.share,
                    search=config.search,
                    selfplay=selfplay,
                    simulations=game.simulations(progress),
                    margin_weight=shaping_weight(config.shaping, progress),
                    sparse_share=linear(selfplay.sparse_share, selfplay.final_sparse_share, progress),
                    seed=(self._config.seed, self.iteration, len(tasks)),
                    state=state,
                    device=device,
                )
                tasks.append(task)
        return tasks

    def _keep(self, results: list[ShardResult]) -> dict[str, float]:
        """Keep what the shards gave back, in the order of their tasks, and report."""
        rest, share, metrics = iter(results), self._config.learner.surprise_share, []
        for game in self._games:
            own = list(itertools.islice(rest, len(game.shards)))
            metrics.append(game.keep(self.iteration + 1, own, share))
        return self._of_games(metrics)

    def _learn(self, progress: float) -> dict[str, float]:
        """Learn as much as the newest samples allow, and report; nothing before there are enough of them."""
        config, started = self._config, time.perf_counter()
        self._learning_seconds = 0.0
        new = sum(game.replay.newest() for game in self._games)
        batches = round(config.replay.reuse * new / config.learner.batch_size)
        if batches == 0 or not all(game.ready for game in self._games):
            return {}
        rng = np.random.default_rng((config.seed, self.iteration, self._num_shards(), _ORDER))
        count = batches * self.learner.part_size
        drawn = [game.replay.draw(rng, count, game.window(progress)) for game in self._games]
        small = self.learner.network.record.num_parameters < _FOR_ONE_THREAD
        with torch_threads(1 if small else torch.get_num_threads()):
            metrics = self._of_games(self.learner.learn(drawn, progress, rng))
        self._learning_seconds = time.perf_counter() - started
        return metrics

    # -- files -------------------------------------------------------------------------------------------------------

    def write_policy(self, folder: pathlib.Path) -> None:
        """Write the weights that play as a checkpoint."""
        write_checkpoint(folder, self._playing_network(), self.config, self.steps)

    def _playing_network(self) -> PolicyValueNetwork:
        network = PolicyValueNetwork(self.learner.network.record)
        network.load_state_dict({name: torch.from_numpy(array) for name, array in self.learner.averaged().items()})
        return network

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """What a resume needs beside the counters of every run: arrays by name, and JSON."""
        states = enumerate(state for game in self._games for state in game.shards)
        shards = {f"shard{number}": state for number, state in states if state is not None}
        policies = {f"policy{number}": weights for number, weights in self._policies.items()}
        record = {"policies": sorted(self._policies)} | {game.place: game.replay.checksums() for game in self._games}
        return joined({"learner": self.learner.state(), **shards, **policies}), record

    def take_up(self, arrays: dict[str, NDArray[Any]], record: dict[str, Any]) -> None:
        """Go on from a saved state, whose configuration was found to fit."""
        self.learner.restore(part_of(arrays, "learner"))
        numbers = itertools.count()
        for game in self._games:
            game.shards = [part_of(arrays, f"shard{next(numbers)}") or None for _ in game.shards]
            game.replay.restore(record["iteration"], record[game.place])
        self._policies = {number: part_of(arrays, f"policy{number}") for number in record["policies"]}

    def close(self) -> None:
        """Let the workers go."""
        self._background.shutdown()
        for game in self._games:
            game.replay.close()
        if self._engine:
            self._engine.__exit__(None, None, None)


def _mean_where(numbers: NDArray[np.float32], wanted: NDArray[np.bool_]) -> float:
    return float(numbers[wanted].mean()) if wanted.any() else 0.0
