"""Yote as a PettingZoo environment; arguments as ``tradgames_env.envs.aec.TraditionalGameEnv`` takes them."""

import functools

from tradgames_env.envs import aec

env = functools.partial(aec.env, "yote")
raw_env = functools.partial(aec.raw_env, "yote")
parallel_env = functools.partial(aec.parallel_env, "yote")
