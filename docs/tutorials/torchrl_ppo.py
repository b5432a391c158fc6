"""TorchRL: PPO with masked actions learns Petteia on 4x4 in a native batched environment.

pip install "tradgames-env[torchrl]". Takes about a minute; TUTORIAL_STEPS changes how long it trains.
"""

import os

import torch
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.collectors import Collector
from torchrl.envs import ExplorationType, set_exploration_type
from torchrl.modules import MaskedCategorical, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

from tradgames_env.integrations.torchrl import GamesEnv

steps = int(os.environ.get("TUTORIAL_STEPS", "65536"))
torch.manual_seed(1)

# 64 games in one process; without `opponent` the policy would decide for both sides.
games = GamesEnv("petteia", "mini", num_envs=64, opponent="random")
games.set_seed(1)
cells = games.observation_spec["observation"].shape[1:].numel()


def network(outputs: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(-3), nn.Linear(cells, 128), nn.ReLU(), nn.Linear(128, outputs))


# The mask reaches the distribution as an argument, so an illegal action can neither be drawn nor be credited.
policy = ProbabilisticActor(
    TensorDictModule(network(games.action_spec.n), in_keys=["observation"], out_keys=["logits"]),
    in_keys={"logits": "logits", "mask": "action_mask"},
    distribution_class=MaskedCategorical,
    return_log_prob=True,
)
value = ValueOperator(network(1), in_keys=["observation"])
loss = ClipPPOLoss(policy, value, entropy_coeff=0.005)
advantage = GAE(gamma=1.0, lmbda=0.95, value_network=value)
optimizer = torch.optim.Adam(loss.parameters(), lr=1e-3)

frames = max(4096, steps // 4096 * 4096)
collector = Collector(games, policy, frames_per_batch=4096, total_frames=frames, auto_register_policy_transforms=False)
for batch in collector:
    advantage(batch)
    flat = batch.reshape(-1)
    for _ in range(4):
        for part in torch.randperm(len(flat)).split(512):
            losses = loss(flat[part])
            optimizer.zero_grad()
            (losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]).backward()
            optimizer.step()

with torch.no_grad(), set_exploration_type(ExplorationType.DETERMINISTIC):
    games.set_seed(2)
    played = games.rollout(200, policy, break_when_any_done=False)["next"]
ended = played["done"]
print(f"mean reward against random in {int(ended.sum())} games: {played['reward'][ended].mean():+.3f}")
