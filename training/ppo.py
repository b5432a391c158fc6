"""Masked PPO by self-play, to be read from top to bottom: advantages, loss, update, and the loop that ties them.

Both sides are played by the network that learns; in some games one side is played by a frozen past version of it. The
two sides' decisions form one sequence, and values are always the mover's: a value changes sign where the mover changes,
which is not at every step (a second decision of the same turn keeps it). A final reward so reaches the last decisions
of both sides: the last mover's as it is, the other's with the opposite sign.

Result and margin are two streams of reward with a value each. Their advantages are added with a weight that falls to 0
during the run: games that random play never decides are learned from captures first, and from results alone in the end.
A game stopped by ``max_turns`` has a result of 0, as in evaluation.

Letters: T steps, N games, B decisions of a minibatch, F features, A actions.
"""

import contextlib
import dataclasses
import pathlib
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import safetensors.numpy
import torch
from numpy.typing import NDArray
from rich.console import Console
from torch import Tensor

from tradgames_env.agents.checkpoint import CheckpointError, NetworkRecord
from tradgames_env.agents.network import PolicyValueNetwork, masked_log_probabilities, resolve_device
from tradgames_env.envs.batch_games import BatchGames
from training.checkpoint import load_state, save_state, write_checkpoint
from training.config import BudgetConfig, ConfigError, PPOConfig, TrainConfig, parse_config
from training.metrics import METRICS_FILE, MetricsLog, ProgressBar, draw_curves, game_metrics
from training.opponents import OpponentPool
from training.rollout import Rollout, SelfPlay

STATE_FILE = "resume.safetensors"
FINAL = "final"
"""Name of the checkpoint of a run that used up its budget."""
BAD_BATCH_FILE = "bad_batch.safetensors"
# A resumed run may have another budget or machine; everything else must be as it was.
_MAY_CHANGE = {"budget", "play", "save_minutes", "progress", "threads", "device"}


class TrainingError(RuntimeError):
    """Training cannot go on; the message says why and where the evidence lies."""


# -- the mathematics -----------------------------------------------------------------------------------------------


def generalised_advantages(
    rewards: NDArray[np.float32],
    values: NDArray[np.float32],
    movers: NDArray[np.int8],
    done: NDArray[np.bool_],
    gamma: float,
    gae_lambda: float,
) -> NDArray[np.float32]:
    """Lambda advantages of a two-player zero-sum game, for any number of reward streams at once.

    Args:
        rewards: (T, N, K), what the mover of a step gets by it.
        values: (T + 1, N, K), expected sum of further rewards of the mover of a step.
        movers: (T + 1, N), who decides.
        done: (T, N), the step ended its game; what follows is another game.
        gamma: discount of each decision.
        gae_lambda: 1 sums all rewards to come, 0 looks one step ahead.

    Returns:
        (T, N, K) float32, from the mover's view.
    """
    advantages = np.zeros_like(rewards)
    following = np.zeros_like(rewards[0])
    for step in reversed(range(len(rewards))):
        sign = np.where(movers[step + 1] == movers[step], np.float32(1), np.float32(-1))
        carry = (np.where(done[step], np.float32(0), sign) * np.float32(gamma))[:, None]
        error = rewards[step] + carry * values[step + 1] - values[step]
        following = error + np.float32(gae_lambda) * carry * following
        advantages[step] = following
    return advantages


@dataclasses.dataclass(frozen=True, eq=False)
class Batch:
    """Decisions to learn from.

    Attributes:
        features: (B, F) float32.
        legal: (B, A) bool.
        actions: (B,) int64.
        log_probabilities: (B,) float32 of the actions under the policy that played.
        advantages: (B,) float32, normalised.
        returns: (B, 2) float32, targets of value and margin.
    """

    features: Tensor
    legal: Tensor
    actions: Tensor
    log_probabilities: Tensor
    advantages: Tensor
    returns: Tensor

    def __len__(self) -> int:
        """Number of decisions."""
        return len(self.actions)

    def select(self, rows: Tensor) -> "Batch":
        """The decisions in ``rows`` (B',) int64."""
        tensors = (getattr(self, field.name) for field in dataclasses.fields(self))
        return Batch(*(tensor.index_select(0, rows) for tensor in tensors))


def make_batch(
    rollout: Rollout, config: PPOConfig, shaping: float, device: torch.device
) -> tuple[Batch, NDArray[np.float32]]:
    """The learned decisions of a rollout with advantages and targets, and the (B, 2) values they had."""
    advantages = generalised_advantages(
        rollout.rewards, rollout.values, rollout.movers, rollout.done, config.gamma, config.gae_lambda
    )
    learned = rollout.learned
    values = rollout.values[:-1][learned]
    returns = advantages[learned] + values
    combined = advantages[learned] @ np.array([1.0, shaping], np.float32)
    combined = (combined - combined.mean()) / (combined.std() + np.float32(1e-8))

    def tensor(array: NDArray[Any]) -> Tensor:
        return torch.from_numpy(array).to(device)

    batch = Batch(
        features=tensor(rollout.features[learned]),
        legal=tensor(rollout.legal[learned]),
        actions=tensor(rollout.actions[learned]),
        log_probabilities=tensor(rollout.log_probabilities[learned]),
        advantages=tensor(combined),
        returns=tensor(returns),
    )
    return batch, values


def ppo_loss(
    network: PolicyValueNetwork, batch: Batch, config: PPOConfig, entropy_weight: float
) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss of a minibatch, and its parts by metric name, detached."""
    logits, values = network(batch.features)
    log_probabilities = masked_log_probabilities(logits, batch.legal)
    chosen = log_probabilities.gather(1, batch.actions[:, None])[:, 0]
    log_ratio = chosen - batch.log_probabilities
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1.0 - config.clip_range, 1.0 + config.clip_range)
    policy_loss = -torch.minimum(ratio * batch.advantages, clipped * batch.advantages).mean()
    entropy = -(log_probabilities.exp() * log_probabilities).sum(dim=1).mean()
    value_loss, margin_loss = (values - batch.returns).square().mean(dim=0)
    loss = (
        policy_loss - entropy_weight * entropy + config.value_weight * value_loss + config.margin_weight * margin_loss
    )
    parts = {
        "loss/policy": policy_loss,
        "loss/value": value_loss,
        "loss/margin": margin_loss,
        "policy/entropy": entropy,
        "policy/kl": (ratio - 1.0 - log_ratio).mean(),
        "policy/clipped": (ratio != clipped).float().mean(),
    }
    return loss, {name: part.detach() for name, part in parts.items()}


def update(
    network: PolicyValueNetwork,
    optimiser: torch.optim.Optimizer,
    batch: Batch,
    config: PPOConfig,
    entropy_weight: float,
    rng: np.random.Generator,
) -> dict[str, float]:
    """Some epochs of gradient steps on the decisions of one rollout; returns means over the steps.

    Raises:
        NonFiniteLossError: the loss of a minibatch is not a number; the network is as before that step.
    """
    parts: list[dict[str, Tensor]] = []
    norms: list[Tensor] = []
    epochs = 0
    while epochs < config.epochs:
        order = rng.permutation(len(batch))
        epoch_parts = []
        for rows in np.array_split(order, max(1, round(len(batch) / config.minibatch_size))):
            minibatch = batch.select(torch.from_numpy(rows).to(batch.actions.device))
            loss, loss_parts = ppo_loss(network, minibatch, config, entropy_weight)
            if not torch.isfinite(loss):
                raise NonFiniteLossError(minibatch, loss.item())
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            norms.append(torch.nn.utils.clip_grad_norm_(network.parameters(), config.max_grad_norm))
            optimiser.step()
            epoch_parts.append(loss_parts)
        epochs += 1
        parts += epoch_parts
        if config.target_kl is not None and _mean(epoch_parts, "policy/kl") > config.target_kl:
            break
    metrics = {name: _mean(parts, name) for name in parts[0]}
    return metrics | {"policy/epochs": epochs, "gradient/norm": float(torch.stack(norms).mean())}


class NonFiniteLossError(TrainingError):
    """A loss that is not a number, with the minibatch that gave it."""

    def __init__(self, batch: Batch, loss: float) -> None:
        super().__init__(f"the loss became {loss}")
        self.batch = batch


def _mean(parts: list[dict[str, Tensor]], name: str) -> float:
    return float(torch.stack([part[name] for part in parts]).mean())


def explained_variance(values: NDArray[np.float32], returns: NDArray[np.float32]) -> float:
    """Share of the variance of ``returns`` that ``values`` explain; 0 when they do not vary."""
    variance = float(returns.var())
    return 1.0 - float((returns - values).var()) / variance if variance > 0.0 else 0.0


def budget_used(budget: BudgetConfig, steps: int, minutes: float) -> float:
    """Share of a budget used, in [0, 1]: the limit nearer to its end counts."""
    by_steps = steps / budget.steps if budget.steps is not None else 0.0
    by_time = minutes / budget.minutes if budget.minutes is not None else 0.0
    return min(1.0, max(by_steps, by_time))


def _linear(start: float, end: float, progress: float) -> float:
    return start + (end - start) * progress


# -- the run -------------------------------------------------------------------------------------------------------


def train(
    config: TrainConfig, run_dir: pathlib.Path, resume: bool = False, *, console: Console | None = None
) -> pathlib.Path:
    """Train a policy until its budget is used.

    Ctrl-C (or SIGTERM) ends the run after the iteration at work: everything is saved and ``resume`` goes on from there.

    Args:
        config: what to do.
        run_dir: gets metrics, curves, checkpoints and the state for a resume; made if missing.
        resume: go on with the run in ``run_dir``. With a budget of steps, the result is what an undisturbed run gives,
            bit for bit on the same machine.
        console: for the progress bar and notes; standard error when None.

    Returns:
        The folder of the final checkpoint, or of the latest one when the run was stopped.

    Raises:
        ConfigError: ``run_dir`` already holds a run, or the one to resume had another configuration.
        CheckpointError: there is nothing to resume from.
        TrainingError: the loss is no longer a number; the minibatch is saved.
    """
    run_dir = pathlib.Path(run_dir)
    console = console or Console(stderr=True)
    if not resume and any((run_dir / name).exists() for name in (STATE_FILE, METRICS_FILE, "checkpoints")):
        raise ConfigError(f"{run_dir}: it already holds a run; resume it or give another folder")
    with _torch_threads(config.threads), _stop_signals() as stop:
        run = _Run(config, run_dir)
        if resume:
            run.restore()
        else:
            (run_dir / "checkpoints").mkdir(parents=True, exist_ok=True)
            run.save()
        try:
            return _loop(run, console, stop)
        except NonFiniteLossError as error:
            raise run.failure(error) from None
        finally:
            run.games.close()


def _loop(run: "_Run", console: Console, stop: threading.Event) -> pathlib.Path:
    config, log = run.config, MetricsLog(run.run_dir, run.iteration, console)
    saved_minutes = run.minutes
    with contextlib.closing(log), ProgressBar(console, enabled=config.progress == "auto") as bar:
        while run.progress < 1.0 and not stop.is_set():
            metrics = run.iterate()
            log.write(metrics)
            bar.update(run.progress, run.seconds_left(), _note(metrics))
            if run.minutes - saved_minutes >= config.save_minutes:
                saved_minutes = run.minutes
                run.save_checkpoint()
    if run.progress < 1.0:
        folder = run.save_checkpoint()
        note = f"stopped after {run.steps:,} decisions; saved in {run.run_dir}, resume to go on"
        console.print(note, markup=False, highlight=False, soft_wrap=True)
        return folder
    label = config.game.ruleset().label
    draw_curves(run.run_dir, f"PPO self-play, {label}, seed {config.seed}")
    return run.save_checkpoint(FINAL)


def _note(metrics: dict[str, float]) -> str:
    draws = f", {metrics['games/draws']:.0%} draws" if "games/draws" in metrics else ""
    return f"{metrics['steps'] / 1e6:.2f} M decisions, {metrics['speed/decisions_per_second'] / 1e3:.1f} k/s{draws}"


class _Run:
    """Everything that changes while a run goes on, and one iteration of it."""

    def __init__(self, config: TrainConfig, run_dir: pathlib.Path) -> None:
        self.config = config
        self.run_dir = run_dir
        self.iteration = 0
        self.steps = 0
        self.minutes = 0.0
        # New uses go at the end: each child depends on its place alone.
        games_seed, play_seed, order_seed, weights_seed = np.random.SeedSequence(config.seed).spawn(4)
        game = config.game
        options: dict[str, Any] = dict(game.options)
        self.games = BatchGames(
            game.name,
            game.variant,
            num_games=config.rollout.games,
            seed=games_seed,
            num_threads=config.threads,
            **options,
        )
        try:
            record = NetworkRecord.for_games([self.games.ruleset], config.network.width, config.network.blocks)
        except ValueError as error:
            raise ConfigError(f"{error}; give a smaller network.width or network.blocks") from None
        self.network = PolicyValueNetwork(record)
        self.network.initialise(torch.Generator().manual_seed(int(weights_seed.generate_state(1)[0])))
        self.device = resolve_device(config.device)
        self.network.to(self.device)
        self.optimiser = torch.optim.Adam(self.network.parameters(), lr=config.ppo.learning_rate, eps=1e-5, fused=True)
        self.pool = OpponentPool(config.pool, config.rollout.games)
        self.play_rng = np.random.default_rng(play_seed)
        self.order_rng = np.random.default_rng(order_seed)
        self.self_play = SelfPlay(self.games, self.pool, config.rollout, self.play_rng)

    @property
    def progress(self) -> float:
        """Share of the budget used."""
        return budget_used(self.config.budget, self.steps, self.minutes)

    def seconds_left(self) -> float:
        """Time to the end of the budget, at the speed so far."""
        return 60.0 * self.minutes * (1.0 - self.progress) / max(self.progress, 1e-9)

    def iterate(self) -> dict[str, float]:
        """Play a rollout, learn from it, and report."""
        config, progress = self.config, self.progress
        shaping = config.shaping.weight * max(0.0, 1.0 - progress / max(config.shaping.until, 1e-9))
        entropy = _linear(config.ppo.entropy, config.ppo.final_entropy, progress)
        rate = _linear(config.ppo.learning_rate, config.ppo.final_learning_rate, progress)
        self.optimiser.param_groups[0]["lr"] = rate
        started = time.perf_counter()
        if self.iteration % config.pool.every == 0 and config.pool.share > 0.0:
            self.pool.add(self.network)
        rollout, counts = self.self_play.collect(self.network)
        collected = time.perf_counter()
        batch, values = make_batch(rollout, config.ppo, shaping, self.device)
        metrics = update(self.network, self.optimiser, batch, config.ppo, entropy, self.order_rng)
        ended = time.perf_counter()
        self.iteration += 1
        self.steps += rollout.actions.size
        self.minutes += (ended - started) / 60.0
        return {
            "iteration": self.iteration,
            "steps": self.steps,
            "minutes": self.minutes,
            "progress": self.progress,
            "speed/decisions_per_second": rollout.actions.size / (ended - started),
            "speed/update_share": (ended - collected) / (ended - started),
            **game_metrics(counts),
            "data/learned_share": len(batch) / rollout.actions.size,
            **metrics,
            "value/explained": explained_variance(values[:, 0], batch.returns[:, 0].cpu().numpy()),
            "schedule/learning_rate": rate,
            "schedule/entropy": entropy,
            "schedule/shaping": shaping,
        }

    # -- files -------------------------------------------------------------------------------------------------------

    def save_checkpoint(self, name: str | None = None) -> pathlib.Path:
        """Save the state for a resume, and the policy as a checkpoint."""
        self.save()
        folder = self.run_dir / "checkpoints" / (name or f"step_{self.steps}")
        write_checkpoint(folder, self.network, self.config, self.steps)
        return folder

    def save(self) -> None:
        """Save the state for a resume."""
        arrays: dict[str, NDArray[Any]] = {}
        parts = {
            "network": {name: tensor.cpu().numpy() for name, tensor in self.network.state_dict().items()},
            "adam": self._adam_state(),
            "pool": self.pool.state(),
            "play": self.self_play.state(),
        }
        for part, entries in parts.items():
            arrays |= {f"{part}/{name}": array for name, array in entries.items()}
        record = {
            "config": self.config.model_dump(mode="json"),
            "iteration": self.iteration,
            "steps": self.steps,
            "minutes": self.minutes,
            "play_rng": self.play_rng.bit_generator.state,
            "order_rng": self.order_rng.bit_generator.state,
        }
        save_state(self.run_dir / STATE_FILE, arrays, record)

    def restore(self) -> None:
        """Take up the saved state.

        Raises:
            CheckpointError: there is none, or its content does not fit.
            ConfigError: it is of a run with another configuration.
        """
        path = self.run_dir / STATE_FILE
        arrays, record = load_state(path)
        try:
            self._take_up(arrays, record)
        except (ConfigError, CheckpointError):
            raise
        except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
            raise CheckpointError(f"{path}: its content does not fit the run ({error}); start anew") from error

    def _take_up(self, arrays: dict[str, NDArray[Any]], record: dict[str, Any]) -> None:
        self._refuse_changes(parse_config(record["config"], str(self.run_dir / STATE_FILE)))

        def part(prefix: str) -> dict[str, NDArray[Any]]:
            start = f"{prefix}/"
            return {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}

        self.network.load_state_dict({name: torch.from_numpy(array) for name, array in part("network").items()})
        self._restore_adam(part("adam"))
        self.pool.restore(part("pool"), self.network)
        self.self_play.restore(part("play"))
        self.iteration, self.steps, self.minutes = record["iteration"], record["steps"], record["minutes"]
        self.play_rng.bit_generator.state = record["play_rng"]
        self.order_rng.bit_generator.state = record["order_rng"]

    def failure(self, error: NonFiniteLossError) -> TrainingError:
        """Save the minibatch of a loss that is not a number, and say so."""
        path = self.run_dir / BAD_BATCH_FILE
        fields = {field.name: getattr(error.batch, field.name) for field in dataclasses.fields(error.batch)}
        safetensors.numpy.save_file({name: tensor.cpu().numpy() for name, tensor in fields.items()}, str(path))
        return TrainingError(
            f"{error} in iteration {self.iteration + 1}; the minibatch is in {path}. "
            "A smaller ppo.learning_rate or ppo.max_grad_norm usually helps"
        )

    def _adam_state(self) -> dict[str, NDArray[Any]]:
        states = self.optimiser.state_dict()["state"]
        return {
            f"{index}.{name}": tensor.cpu().numpy() for index, state in states.items() for name, tensor in state.items()
        }

    def _restore_adam(self, arrays: dict[str, NDArray[Any]]) -> None:
        values = self.optimiser.state_dict()
        for key, array in arrays.items():
            index, name = key.split(".")
            values["state"].setdefault(int(index), {})[name] = torch.from_numpy(array)
        self.optimiser.load_state_dict(values)

    def _refuse_changes(self, before: TrainConfig) -> None:
        for name in TrainConfig.model_fields:
            old, new = getattr(before, name), getattr(self.config, name)
            if name not in _MAY_CHANGE and old != new:
                raise ConfigError(f"{self.run_dir}: this run was started with {name} = {old!r}, not {new!r}")


@contextlib.contextmanager
def _torch_threads(count: int | None) -> Iterator[None]:
    """Let torch use ``count`` cores for a while."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextlib.contextmanager
def _stop_signals() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C or SIGTERM sets; a second Ctrl-C interrupts as usual."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def handle(number: int, frame: Any) -> None:
        stop.set()
        signal.signal(number, before[signal.Signals(number)])

    for number in before:
        signal.signal(number, handle)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
