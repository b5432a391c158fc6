"""Minari: games recorded as a dataset."""

from typing import Any

import gymnasium
import numpy as np
from minari import DataCollector, StepDataCallback

_KEPT = ("action_mask", "illegal", "seat")


class _Numbers(StepDataCallback):  # type: ignore[misc]
    """Keeps of the infos what is a number: a dataset takes no lists that vary in length, and no None."""

    def __call__(self, env: Any, **kwargs: Any) -> Any:
        step = super().__call__(env, **kwargs)
        info = step["info"]
        winner = -1 if info["winner"] is None else info["winner"]
        step["info"] = {key: np.asarray(info[key]) for key in _KEPT} | {"winner": np.asarray(winner)}
        return step


def collector(env: gymnasium.Env[Any, Any], **kwargs: Any) -> Any:
    """A Minari ``DataCollector`` around a learner's view of a game, from which ``create_dataset`` makes a dataset.

    Infos are recorded: ``action_mask`` (A,) int8, ``seat``, ``winner`` (-1 for none) and ``illegal``.

    Args:
        env: an environment made by ``gymnasium.make``, which the dataset can then make again.
        **kwargs: more arguments of ``DataCollector``.
    """
    return DataCollector(env, step_data_callback=_Numbers, record_infos=True, **kwargs)
