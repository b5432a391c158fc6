"""Training by search, to be read from top to bottom: play with search, keep the samples, learn from them, again.

Self-play is split into shards, pure functions that any engine computes. Everything random follows from the seed, the
iteration and the shard, never from who plays where, so a run gives the same weights on any number of workers, and a
run that was killed goes on as if it never had been.
"""

import concurrent.futures
import pathlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tradgames_env.agents.checkpoint import NetworkRecord
from tradgames_env.agents.layout import InputLayout
from tradgames_env.agents.network import PolicyValueNetwork, resolve_device
from tradgames_env.processors import cores
from training.against_perfect import AgainstPerfect
from training.checkpoint import write_checkpoint
from training.config import AlphaZeroTrainConfig, ConfigError
from training.engines import Engine, open_engine, torch_threads
from training.learner import Learner, Reflection
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
        ruleset = config.game.ruleset()
        try:
            record = NetworkRecord.for_games(
                [ruleset], config.network.width, config.network.blocks, trunk=config.network.trunk, value="wdl"
            )
        except ValueError as error:
            raise ConfigError(f"{error}; give a smaller network.width or network.blocks") from None
        network = PolicyValueNetwork(record)
        seed = np.random.SeedSequence((config.seed, _WEIGHTS)).generate_state(1)[0]
        network.initialise(torch.Generator().manual_seed(int(seed)))
        mirrored = ruleset.rules.mirror(ruleset.options) if config.learner.mirror else None
        layout = InputLayout.of([ruleset], whole_planes=record.trunk == "conv")
        reflection = Reflection(*mirrored, layout, ruleset) if mirrored else None
        self.learner = Learner(network.to(resolve_device(config.device)), config.learner, reflection, ranks)
        self.replay = Replay(run_dir / REPLAY_FOLDER, config.replay.window)
        self._shards: list[Arrays | None] = [None] * config.selfplay.shards
        self._policies: dict[int, Arrays] = {}
        self._against_perfect = AgainstPerfect(ruleset)
        self._learning_seconds = 0.0
        self._background = concurrent.futures.ThreadPoolExecutor(1)
        self._engine = self._open_engine() if ranks.first else None

    def _open_engine(self) -> Engine:
        config = self._config.selfplay
        workers = config.workers or self._config.threads or cores()
        return open_engine(config.engine, min(workers, config.shards), say=self._say)

    # -- an iteration ------------------------------------------------------------------------------------------------

    def iterate(self) -> dict[str, float]:
        """Play with search, learn from it, and report."""
        config, progress = self._config, self.progress
        started = time.perf_counter()
        overlap = config.selfplay.overlap
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
        self.replay.forget(self.saved.iterations()[0])
        self.minutes += (time.perf_counter() - learned) / 60.0
        self.minutes = self.ranks.of_first(self.minutes)
        seconds = learned - started
        return {
            "iteration": self.iteration,
            "steps": self.steps,
            "minutes": self.minutes,
            "progress": self.progress,
            "speed/decisions_per_second": self._decisions() / seconds,
            "speed/update_share": self._learning_seconds / seconds,
            **report,
            "data/window": float(min(len(self.replay), self._window(progress))),
            **metrics,
            **self._against_perfect.measure(self._playing_network()),
            "schedule/shaping": shaping_weight(config, progress),
            "schedule/simulations": float(self._simulations(progress)),
        }

    def _decisions(self) -> int:
        """Of an iteration."""
        selfplay = self._config.selfplay
        return selfplay.shards * selfplay.games * selfplay.decisions

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
        self._shards = [result.state for result in results]
        seconds = time.perf_counter() - started
        samples = self._keep(results)
        return {
            "speed/simulations_per_second": sum(result.simulations for result in results) / seconds,
            **game_metrics(sum_counts([result.counts for result in results])),
            "data/learned_share": len(samples["results"]) / self._decisions(),
            "search/surprise": _mean_where(samples["surprises"], samples["taught"]),
        }

    def _share_samples(self) -> None:
        """Let processes that learn along read what this one has played."""
        if self.ranks.count == 1:
            return
        self.replay.settle()
        self.ranks.of_first(0.0)
        if not self._engine:
            self.replay.follow(self.iteration + 1)

    def _freeze(self) -> None:
        """Keep the weights that play as a past policy, now and then; let go of those that nobody plays any more."""
        pool = self._config.pool
        if pool.share == 0.0 or self.iteration % pool.every != 0:
            return
        self._policies[self.iteration] = self.learner.averaged()
        playing = {int(number) for shard in self._shards if shard for number in np.unique(shard["opponents"])}
        self._policies = {
            number: weights for number, weights in self._policies.items() if number in playing | set(self._drawn())
        }

    def _drawn(self) -> tuple[int, ...]:
        return tuple(sorted(self._policies)[-self._config.pool.capacity :])

    def _tasks(self, progress: float) -> list[ShardTask]:
        config, weights = self._config, self.learner.averaged()
        selfplay = config.selfplay
        return [
            ShardTask(
                game=config.game.name,
                variant=config.game.variant,
                options=config.game.options,
                network=self.learner.network.record,
                weights=weights,
                policies=self._policies,
                drawn=self._drawn(),
                pool_share=config.pool.share,
                search=config.search,
                selfplay=selfplay,
                simulations=self._simulations(progress),
                margin_weight=shaping_weight(config, progress),
                sparse_share=linear(selfplay.sparse_share, selfplay.final_sparse_share, progress),
                seed=(config.seed, self.iteration, shard),
                state=state,
                device=str(resolve_device(config.device)),
            )
            for shard, state in enumerate(self._shards)
        ]

    def _simulations(self, progress: float) -> int:
        search = self._config.search
        return round(linear(search.start_simulations or search.simulations, search.simulations, progress))

    def _window(self, progress: float) -> int:
        return round(linear(self._config.replay.first_window, self._config.replay.window, progress))

    def _keep(self, results: list[ShardResult]) -> Arrays:
        """The new samples of all shards, written to the replay."""
        samples = merge([result.samples for result in results])
        taught, surprises = samples["taught"], samples["surprises"]
        stored = {name: array for name, array in samples.items() if name not in ("taught", "surprises")}
        stored["weights"] = policy_weights(taught, surprises, self._config.learner.surprise_share)
        self.replay.add(self.iteration + 1, stored)
        return samples

    def _learn(self, progress: float) -> dict[str, float]:
        """Learn as much as the newest samples allow, and report; nothing before there are enough of them."""
        config, started = self._config, time.perf_counter()
        self._learning_seconds = 0.0
        batches = round(config.replay.reuse * self.replay.newest() / config.learner.batch_size)
        if batches == 0 or len(self.replay) < config.replay.fewest:
            return {}
        rng = np.random.default_rng((config.seed, self.iteration, config.selfplay.shards, _ORDER))
        drawn = self.replay.draw(rng, batches * config.learner.batch_size, self._window(progress))
        small = self.learner.network.record.num_parameters < _FOR_ONE_THREAD
        with torch_threads(1 if small else torch.get_num_threads()):
            metrics = self.learner.learn(drawn, progress, rng)
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
        shards = {f"shard{number}": state for number, state in enumerate(self._shards) if state is not None}
        policies = {f"policy{number}": weights for number, weights in self._policies.items()}
        record = {"policies": sorted(self._policies), "replay": self.replay.checksums()}
        return joined({"learner": self.learner.state(), **shards, **policies}), record

    def take_up(self, arrays: dict[str, NDArray[Any]], record: dict[str, Any]) -> None:
        """Go on from a saved state, whose configuration was found to fit."""
        self.learner.restore(part_of(arrays, "learner"))
        self._shards = [part_of(arrays, f"shard{number}") or None for number in range(len(self._shards))]
        self._policies = {number: part_of(arrays, f"policy{number}") for number in record["policies"]}
        self.replay.restore(record["iteration"], record["replay"])

    def close(self) -> None:
        """Let the workers go."""
        self._background.shutdown()
        self.replay.close()
        if self._engine:
            self._engine.__exit__(None, None, None)


def _mean_where(numbers: NDArray[np.float32], wanted: NDArray[np.bool_]) -> float:
    return float(numbers[wanted].mean()) if wanted.any() else 0.0
