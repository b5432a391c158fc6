"""Puluc as a PettingZoo environment; arguments as ``tradgames_env.envs.aec.TraditionalGameEnv`` takes them."""

import functools

from tradgames_env.envs import aec

env = functools.partial(aec.env, "puluc")
raw_env = functools.partial(aec.raw_env, "puluc")
parallel_env = functools.partial(aec.parallel_env, "puluc")
