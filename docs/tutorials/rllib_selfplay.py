"""Ray RLlib (new API stack): PPO with masked actions learns Petteia on 4x4 against frozen copies of itself.

Needs an environment of its own, since RLlib holds Gymnasium at 1.2.2: pip install "tradgames-env[rllib]". Takes some
minutes; TUTORIAL_STEPS changes how long it trains.
"""

import os

import numpy as np
import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

from tradgames_env.envs.single_agent import SingleAgentEnv
from tradgames_env.integrations.rllib import FROZEN, LEARNER, GameEnv, MaskedModule, ModuleAgent, SelfPlay, policy_of
from tradgames_env.rules.ruleset import load_ruleset

steps = int(os.environ.get("TUTORIAL_STEPS", "40000"))
ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="error")

network = {"fcnet_hiddens": [128, 128]}
module = RLModuleSpec(module_class=MaskedModule, model_config=network)
config = (
    PPOConfig()
    .environment(GameEnv, env_config={"game": "petteia", "variant": "mini"})
    # Games are played in this process, and the network asked for all of them at once; more runners play in processes
    # of their own.
    .env_runners(num_env_runners=0, num_envs_per_env_runner=16)
    .multi_agent(policies={LEARNER, FROZEN}, policy_mapping_fn=policy_of, policies_to_train=[LEARNER])
    .rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs={LEARNER: module, FROZEN: module}))
    .training(
        gamma=1.0, lambda_=0.95, lr=1e-3, train_batch_size=4000, minibatch_size=256, num_epochs=8, entropy_coeff=0.005
    )
    .callbacks(lambda: SelfPlay(every=3))
    .debugging(seed=1, log_level="ERROR")
)
algorithm = config.build_algo()
for _ in range(max(1, steps // 4000)):
    algorithm.train()

agent = ModuleAgent(algorithm.get_module(LEARNER), load_ruleset("petteia", "mini"))
judge = SingleAgentEnv("petteia", "mini", opponent="random")
judge.reset(seed=2)
rewards = []
for _ in range(200):
    judge.reset()
    over = False
    while not over:
        chances = agent.policy(judge.position)
        best = max(chances, key=lambda move: chances[move])
        _, reward, terminated, truncated, _ = judge.step(judge.position.parse(best))
        over = terminated or truncated
    rewards.append(reward)
print(f"mean reward against random in {len(rewards)} games: {np.mean(rewards):+.3f}")
algorithm.stop()
