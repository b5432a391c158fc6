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

import dataclasses
import pathlib
import time
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tradgames_env.agents.checkpoint import NetworkRecord
from tradgames_env.agents.network import PolicyValueNetwork, masked_log_probabilities, resolve_device
from tradgames_env.envs.batch_games import BatchGames
from training.checkpoint import write_checkpoint
from training.config import ConfigError, PPOConfig, PPOTrainConfig
from training.metrics import game_metrics
from training.opponents import OpponentPool
from training.ranks import ALONE
from training.rollout import Rollout, SelfPlay
from training.run import (
    NonFiniteLossError,
    Run,
    joined,
    linear,
    optimiser_arrays,
    part_of,
    restore_optimiser,
    shaping_weight,
)

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
        NonFiniteLossError: the loss of a minibatch or its gradient is not finite; the network is as before that step.
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
            if not torch.isfinite(norms[-1]):
                raise NonFiniteLossError(minibatch, norms[-1].item(), "gradient")
            optimiser.step()
            epoch_parts.append(loss_parts)
        epochs += 1
        parts += epoch_parts
        if config.target_kl is not None and _mean(epoch_parts, "policy/kl") > config.target_kl:
            break
    metrics = {name: _mean(parts, name) for name in parts[0]}
    return metrics | {"policy/epochs": epochs, "gradient/norm": float(torch.stack(norms).mean())}


def _mean(parts: list[dict[str, Tensor]], name: str) -> float:
    return float(torch.stack([part[name] for part in parts]).mean())


def explained_variance(values: NDArray[np.float32], returns: NDArray[np.float32]) -> float:
    """Share of the variance of ``returns`` that ``values`` explain; 0 when they do not vary."""
    variance = float(returns.var())
    return 1.0 - float((returns - values).var()) / variance if variance > 0.0 else 0.0


# -- the run -------------------------------------------------------------------------------------------------------


class PPORun(Run):
    """Everything that changes while a run goes on, and one iteration of it."""

    title = "PPO self-play"
    advice = "A smaller ppo.learning_rate or ppo.max_grad_norm"

    def __init__(self, config: PPOTrainConfig, run_dir: pathlib.Path) -> None:
        super().__init__(config, run_dir, ALONE)
        self._config = config
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

    def iterate(self) -> dict[str, float]:
        """Play a rollout, learn from it, and report."""
        config, progress = self._config, self.progress
        shaping = shaping_weight(config.shaping, progress)
        entropy = linear(config.ppo.entropy, config.ppo.final_entropy, progress)
        rate = linear(config.ppo.learning_rate, config.ppo.final_learning_rate, progress)
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
            "speed/games_per_second": counts.games / (ended - started),
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

    def write_policy(self, folder: pathlib.Path) -> None:
        """Write the policy as a checkpoint."""
        write_checkpoint(folder, self.network, self.config, self.steps)

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """What a resume needs beside the counters of every run: arrays by name, and JSON."""
        parts = {
            "network": {name: tensor.cpu().numpy() for name, tensor in self.network.state_dict().items()},
            "adam": optimiser_arrays(self.optimiser),
            "pool": self.pool.state(),
            "play": self.self_play.state(),
        }
        generators = {
            "play_rng": self.play_rng.bit_generator.state,
            "order_rng": self.order_rng.bit_generator.state,
        }
        return joined(parts), generators

    def take_up(self, arrays: dict[str, NDArray[Any]], record: dict[str, Any]) -> None:
        """Go on from a saved state, whose configuration was found to fit."""
        weights = part_of(arrays, "network")
        self.network.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
        restore_optimiser(self.optimiser, part_of(arrays, "adam"))
        self.pool.restore(part_of(arrays, "pool"), self.network)
        self.self_play.restore(part_of(arrays, "play"))
        self.play_rng.bit_generator.state = record["play_rng"]
        self.order_rng.bit_generator.state = record["order_rng"]

    def close(self) -> None:
        """Stop the threads of the games."""
        self.games.close()
