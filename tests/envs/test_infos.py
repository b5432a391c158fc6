"""Info dicts that write the move late must look like plain dicts to everybody who looks."""

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tradgames_env as tg
from tradgames_env.envs.infos import Info

PLAIN = {"winner": None, "reason": None, "move": "A1 -> A2"}


class Pen:
    """Stands for a ruleset and counts what it writes."""

    written = 0

    def notation(self, state: Any, action: int) -> str:
        assert state.tolist() == [1, 2]
        self.written += 1
        return f"A1 -> A{action}"


def late(pen: Pen | None = None) -> Info:
    info = Info({"winner": None, "reason": None, "move": None})
    info.played = (pen or Pen(), np.array([1, 2], np.int16).tobytes(), 2)
    return info


def keywords(**values: Any) -> dict[str, Any]:
    return values


def pattern(info: Any) -> Any:
    match info:
        case {"move": move}:
            return move


def changed(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What a change returns and what it leaves."""
    return lambda info: (change(info), dict(info))


@pytest.mark.parametrize(
    "look",
    [
        lambda info: info["move"],
        lambda info: info.get("move"),
        lambda info: list(info.items()),
        lambda info: list(info.values()),
        lambda info: list(info.keys()),
        lambda info: (len(info), "move" in info, list(info), list(reversed(info)), bool(info)),
        repr,
        str,
        dict,
        json.dumps,
        lambda info: f"{info}",
        lambda info: "{move}".format_map(info),
        lambda info: {**info},
        lambda info: keywords(**info),
        lambda info: {"more": 1} | info,
        lambda info: info | {"more": 1},
        lambda info: {} | info == info | {},
        lambda info: (info == PLAIN, info != PLAIN, info in [PLAIN]),
        lambda info: (info == late(), late() != info, PLAIN in [info]),
        lambda info: info.copy(),
        pattern,
        copy.copy,
        copy.deepcopy,
        lambda info: pickle.loads(pickle.dumps(info)),
        lambda info: dict.fromkeys(info),
        lambda info: dict(zip(info, info.values(), strict=True)),
        lambda info: info.setdefault("move", "other"),
        changed(lambda info: info.pop("move")),
        changed(lambda info: info.popitem()),
        changed(lambda info: info.clear()),
        changed(lambda info: info.update(move="mine")),
        changed(lambda info: info.__setitem__("move", "mine")),
        changed(lambda info: info.__delitem__("move")),
        changed(lambda info: info.__ior__({"move": "mine"})["move"]),
        changed(lambda info: {}.update(info)),
    ],
)
def test_as_a_plain_dict(look: Callable[[Any], Any]) -> None:
    assert look(late()) == look(dict(PLAIN))


def test_every_method_that_sees_values_is_covered() -> None:
    blind = {"__contains__", "__len__", "__sizeof__", "keys", "fromkeys", "__class_getitem__"}
    general = set(dir(object)) - {"__eq__", "__ne__", "__repr__"}
    for name in set(dir(dict)) - blind - general:
        assert getattr(Info, name) is not getattr(dict, name), name


def test_copies_are_plain_and_the_move_is_written_once() -> None:
    pen = Pen()
    info = late(pen)
    assert len(info) == 3
    assert pen.written == 0
    for _ in range(2):
        assert info["move"] == "A1 -> A2"
    assert pen.written == 1
    for twin in (copy.deepcopy(late()), pickle.loads(pickle.dumps(late()))):
        assert type(twin) is dict
    assert Info(winner=1)["winner"] == 1


def test_moves_are_those_played(game: str, variant: str) -> None:
    env = tg.raw_env(game, variant)
    env.reset(seed=5)
    draw = np.random.default_rng(2)
    infos, moves = [], []
    for _ in range(80):
        if any(env.terminations.values()) or any(env.truncations.values()):
            break
        action = int(draw.choice(env.position.legal_actions()))
        position = env.position
        moves.append(position.notation(action))
        env.step(action)
        infos.append(env.infos)
    # Read long after: what is written late is still the move of that step.
    assert [info["player_0"]["move"] for info in infos] == moves
    assert [info["player_1"]["move"] for info in infos] == moves
