"""Notes what the tests of the libraries did, for the page that says what works with which version."""

import importlib.metadata
import json
import pathlib
import platform
from typing import Any, NamedTuple

import pytest


class Library(NamedTuple):
    """A row of the page."""

    packages: tuple[str, ...]
    tests: tuple[str, ...]
    """Names of the files of tests that are about it."""
    limits: tuple[str, ...] = ()
    """What does not work and who knows of it, in Markdown."""


LIBRARIES = {
    "AgileRL": Library(
        ("agilerl", "torch", "pettingzoo", "gymnasium"),
        ("test_agilerl",),
        (
            "its multi-agent classes take parallel games only, and IPPO fails on masks that are arrays",
            "its DQN bootstraps from actions that are not legal; `MaskedDQN` does not",
            "`import agilerl` needs `peft`, which a plain install leaves out",
        ),
    ),
    "Gymnasium": Library(
        ("gymnasium", "moviepy"),
        ("test_gymnasium", "test_single_agent", "test_vector"),
        (
            "one learner against opponents: teams of two are refused",
            "`Discrete.sample` takes a mask of zeros and answers 0; the games never show one to who decides",
        ),
    ),
    "Hugging Face hub": Library(
        ("huggingface_hub", "safetensors"),
        ("test_hub",),
        ("the tests have no network: what is sent and fetched is compared, not the hub's answer",),
    ),
    "Minari": Library(
        ("minari", "gymnasium"),
        ("test_minari",),
        ("it takes no infos that change their shape; `collector` keeps the numbers",),
    ),
    "ONNX": Library(
        ("onnx", "onnxruntime", "onnxscript", "torch"),
        ("test_onnx",),
        ("networks only: the evaluation of an alpha-beta search is refused",),
    ),
    "OpenSpiel": Library(
        ("open-spiel",),
        ("test_openspiel",),
        (
            "its `MCTSBot` of C++ ends the process on any game written in Python",
            "it wants a longest game: one without a bound in its rules is a draw after 10,000 decisions",
        ),
    ),
    "PettingZoo": Library(
        ("pettingzoo", "gymnasium"),
        ("test_aec", "test_wrapped"),
        ("`average_total_reward` plays by no mask up to 1.27 (PettingZoo #1462)",),
    ),
    "Ray RLlib": Library(
        ("ray", "torch", "gymnasium", "pettingzoo"),
        ("test_rllib",),
        (
            "its modules with masks are examples, and break with releases (ray #44452, #44780)",
            "its own PettingZoo wrapper shows `observation` where those modules read `observations`; use `GameEnv`",
        ),
    ),
    "Stable-Baselines3, sb3-contrib": Library(
        ("stable-baselines3", "sb3-contrib", "torch"),
        ("test_sb3",),
        ("it has no self-play and no several agents of its own (sb3-contrib #72, #250)",),
    ),
    "SuperSuit, Shimmy": Library(
        ("supersuit", "shimmy", "pettingzoo"),
        ("test_supersuit",),
        (
            "SuperSuit takes no observation dicts (SuperSuit #96, #252)",
            "Shimmy pays the last reward twice in the loop of `agent_iter`, and loses parameters in `game_name`",
        ),
    ),
    "Tianshou": Library(
        ("tianshou", "torch"),
        ("test_tianshou",),
        ("the successor of a move in its `PettingZooEnv` is the other player's (Tianshou #381, #812)",),
    ),
    "TorchRL": Library(
        ("torchrl", "tensordict", "torch"),
        ("test_torchrl",),
        ("`PettingZooWrapper` shows every player's observation after every move (pytorch/rl #2990, #3215)",),
    ),
}
TITLES = {tests: title for title, library in LIBRARIES.items() for tests in library.tests}
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
                title, way, speed = value
                self._speeds.setdefault(title, {})[way] = speed
        if module not in TITLES or (report.when != "call" and report.passed):
            return
        tests = self._outcomes.setdefault(TITLES[module], {})
        test = name.partition("[")[0].removeprefix("test_").replace("_", " ")
        tests[test] = max(tests.get(test, "passed"), report.outcome, key=("passed", "skipped", "failed").index)

    def pytest_sessionfinish(self) -> None:
        """Write the file."""
        known = json.loads(self._path.read_text()) if self._path.exists() else {}
        for title, tests in self._outcomes.items():
            library = LIBRARIES[title]
            entry = known.setdefault(title, {"tests": {}, "versions": {}, "speed": {}})
            entry |= {"limits": list(library.limits), "python": platform.python_version()}
            entry["tests"] |= tests
            # What is there already was tested first, in the environment that has most of the libraries.
            entry["versions"] = _versions(library.packages) | entry["versions"]
            entry["speed"] |= self._speeds.get(title, {})
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
