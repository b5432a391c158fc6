"""Yut Nori as a PettingZoo environment; arguments as ``tradgames_env.envs.aec.TraditionalGameEnv`` takes them."""

import functools

from tradgames_env.envs import aec

env = functools.partial(aec.env, "yut_nori")
raw_env = functools.partial(aec.raw_env, "yut_nori")
parallel_env = functools.partial(aec.parallel_env, "yut_nori")
