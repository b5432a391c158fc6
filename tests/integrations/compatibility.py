"""Notes what the tests of the libraries did, for the page that says what works with which version."""

import importlib.metadata
import json
import pathlib
import platform
from typing import Any, NamedTuple

import pytest


class Library(NamedTuple):
    """What a file of tests is about."""

    title: str
    packages: tuple[str, ...]
    limits: tuple[str, ...] = ()
    """What does not work and who knows of it, in Markdown."""


LIBRARIES = {
    "test_agilerl": Library(
        "AgileRL",
        ("agilerl", "torch", "pettingzoo", "gymnasium"),
        (
            "its multi-agent classes take parallel games only, and IPPO fails on masks that are arrays",
            "its DQN bootstraps from actions that are not legal; `MaskedDQN` does not",
            "`import agilerl` needs `peft`, which a plain install leaves out",
        ),
    ),
    "test_gymnasium": Library("Gymnasium, Minari", ("gymnasium", "minari", "moviepy")),
    "test_hub": Library("Hugging Face hub", ("huggingface_hub", "safetensors")),
    "test_onnx": Library("ONNX", ("onnx", "onnxruntime", "onnxscript", "torch")),
    "test_openspiel": Library(
        "OpenSpiel", ("open-spiel",), ("its `MCTSBot` of C++ ends the process on any game written in Python",)
    ),
    "test_pettingzoo": Library(
        "PettingZoo, SuperSuit, Shimmy",
        ("pettingzoo", "supersuit", "shimmy"),
        ("SuperSuit takes no observation dicts (SuperSuit #96, #252)",),
    ),
    "test_rllib": Library(
        "Ray RLlib",
        ("ray", "torch", "gymnasium", "pettingzoo"),
        ("its modules with masks are examples, and break with releases (ray #44452, #44780)",),
    ),
    "test_sb3": Library(
        "Stable-Baselines3",
        ("stable-baselines3", "sb3-contrib", "torch"),
        ("it has no self-play and no several agents of its own (sb3-contrib #72, #250)",),
    ),
    "test_tianshou": Library(
        "Tianshou",
        ("tianshou", "torch"),
        ("the successor of a move in its `PettingZooEnv` is the other player's (Tianshou #381, #812)",),
    ),
    "test_torchrl": Library(
        "TorchRL",
        ("torchrl", "tensordict", "torch"),
        ("`PettingZooWrapper` shows every player's observation after every move (pytorch/rl #2990, #3215)",),
    ),
}
"""By the name of the file of tests."""


class Recorder:
    """A plugin of pytest that adds to a JSON file what passed, with which versions, and how fast.

    Args:
        path: what is already in the file stays, so several environments can write one.
    """

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path
        self._outcomes: dict[str, dict[str, str]] = {}
        self._speeds: dict[str, dict[str, float]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the worst outcome of each test over its parameters, and what it measured."""
        module, _, name = report.nodeid.rpartition("/")[2].partition(".py::")
        for key, value in report.user_properties:
            if key == "speed" and isinstance(value, list | tuple):
                library, way, speed = value
                self._speeds.setdefault(library, {})[way] = speed
        if module not in LIBRARIES or (report.when != "call" and report.passed):
            return
        tests = self._outcomes.setdefault(module, {})
        test = name.partition("[")[0].removeprefix("test_").replace("_", " ")
        tests[test] = max(tests.get(test, "passed"), report.outcome, key=("passed", "skipped", "failed").index)

    def pytest_sessionfinish(self) -> None:
        """Write the file."""
        known = json.loads(self._path.read_text()) if self._path.exists() else {}
        for module, tests in self._outcomes.items():
            library = LIBRARIES[module]
            entry = known.setdefault(library.title, {"tests": {}, "versions": {}, "speed": {}})
            entry |= {"limits": list(library.limits), "python": platform.python_version()}
            entry["tests"] |= tests
            # What is there already was tested first, in the environment that has most of the libraries.
            entry["versions"] = _versions(library.packages) | entry["versions"]
            entry["speed"] |= self._speeds.get(module, {})
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n")


def _versions(packages: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, Any] = {}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
