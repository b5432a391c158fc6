"""What ``load_agent`` takes, and what it says to what it does not take."""

import pathlib
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import tradgames_env as tg
from tradgames_env.agents import AGENT_NAMES, FunctionAgent, load_agent
from tradgames_env.agents.alphabeta import AlphaBetaAgent
from tradgames_env.agents.base import Agent
from tradgames_env.agents.greedy import GreedyAgent
from tradgames_env.agents.mcts import MCTSAgent
from tradgames_env.agents.random import RandomAgent

CHECKPOINTS = pathlib.Path(__file__).parents[2] / "checkpoints"


def first_move(position: tg.Position) -> str:
    return position.legal_moves()[0]


@pytest.mark.parametrize(
    ("name", "cls", "full_name"),
    [
        ("random", RandomAgent, "random"),
        ("greedy", GreedyAgent, "greedy"),
        ("alphabeta", AlphaBetaAgent, "alphabeta:2"),
        ("alphabeta:3", AlphaBetaAgent, "alphabeta:3"),
        ("mcts", MCTSAgent, "mcts:200"),
        ("mcts:0050", MCTSAgent, "mcts:50"),
    ],
)
def test_names(name: str, cls: type, full_name: str) -> None:
    agent = load_agent(name)
    assert type(agent) is cls
    assert isinstance(agent, Agent)
    assert agent.name == full_name


def test_budgets_reach_the_agents() -> None:
    deep, broad = load_agent("alphabeta:7"), load_agent("mcts:1000")
    assert isinstance(deep, AlphaBetaAgent)
    assert deep.depth == 7
    assert isinstance(broad, MCTSAgent)
    assert broad.simulations == 1000


def test_agent_names_for_help_texts() -> None:
    assert AGENT_NAMES == ("random", "greedy", "alphabeta:DEPTH", "mcts:SIMULATIONS", "perfect")


def test_agents_are_returned_as_they_are() -> None:
    agent = GreedyAgent()
    assert load_agent(agent) is agent


def test_functions_become_agents() -> None:
    agent = load_agent(first_move)
    position = tg.Position("petteia")
    assert isinstance(agent, FunctionAgent)
    assert agent.name == "first_move"
    assert agent.act(position) == "A1 -> A2"
    assert agent.act_many([position, position]) == ["A1 -> A2"] * 2
    policy = agent.policy(position)
    assert policy.pop("A1 -> A2") == 1.0
    assert set(policy.values()) == {0.0}
    assert agent.value(position) == 0.0


def test_functions_may_return_actions_and_play_on_their_position() -> None:
    def last_action(position: tg.Position) -> int:
        action = position.legal_actions()[-1]
        position.push(action)
        return action

    position = tg.Position("petteia")
    before = position.text()
    assert load_agent(last_action).act(position) == position.legal_moves()[-1]
    assert position.text() == before


def test_callable_objects_become_agents() -> None:
    class Last:
        def __call__(self, position: tg.Position) -> np.int64:
            return np.int64(position.legal_actions()[-1])

    agent = load_agent(Last())
    assert agent.name == "Last"
    assert agent.act(tg.Position("yote")) == tg.Position("yote").legal_moves()[-1]


def test_functions_that_break_the_rules_are_told_so() -> None:
    with pytest.raises(tg.IllegalMoveError, match="'A1 -> A8' is not legal"):
        load_agent(lambda position: "A1 -> A8").act(tg.Position("petteia"))
    with pytest.raises(tg.NotationError):
        load_agent(lambda position: "castles").act(tg.Position("petteia"))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("rondom", "no agent 'rondom'; did you mean 'random'? known: random, greedy, alphabeta:DEPTH"),
        ("MCTS:100", "no agent 'MCTS:100'; did you mean 'mcts'?"),
        ("network", "no agent 'network'; known: "),
        ("", "no agent ''; known: "),
        (":3", "no agent ':3'; known: "),
        (
            "mcts:0",
            "number after 'mcts' is its simulations and must be a positive integer, such as 'mcts:200', not '0'",
        ),
        ("mcts:-5", "not '-5'"),
        ("mcts:1.5", "not '1.5'"),
        ("mcts:1_000", "not '1_000'"),
        ("mcts: 10", "not ' 10'"),
        ("mcts:١٢", "must be a positive integer"),
        ("mcts:", "not ''"),
        ("mcts:10:20", "not '10:20'"),
        ("mcts:10/20", "not '10/20'"),
        ("mcts:" + "9" * 5000, "simulations must be an integer from 1 to 10000000"),
        ("alphabeta:x", "number after 'alphabeta' is its depth and must be a positive integer, such as 'alphabeta:2'"),
        ("alphabeta:1001", "depth must be an integer from 1 to 1000, not 1001"),
        ("random:3", "agent 'random' takes no number, so write 'random', not 'random:3'"),
        ("greedy:", "agent 'greedy' takes no number"),
        (7, "not 7"),
        (None, "python:..., or the folder of a checkpoint, an Agent or"),
        (RandomAgent, "pass RandomAgent(), not the class"),
    ],
)
def test_what_is_no_agent(spec: Any, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the message is checked below, without escapes
        load_agent(spec)
    assert message in str(caught.value)


def test_half_an_agent_is_told_what_it_lacks() -> None:
    class Half:
        name = "half"

        def act(self, position: tg.Position) -> str:
            return first_move(position)

    with pytest.raises(ValueError, match="lacks act_many, policy, seed, value of the Agent protocol"):
        load_agent(Half())  # type: ignore[arg-type]


@pytest.mark.parametrize("as_path", [str, pathlib.Path])
def test_missing_folders(as_path: type, tmp_path: pathlib.Path) -> None:
    with pytest.raises(ValueError, match=r"a checkpoint is a folder, and .*nowhere' does not exist"):
        load_agent(as_path(tmp_path / "nowhere"))
    (tmp_path / "model").write_text("")
    with pytest.raises(ValueError, match=r"a checkpoint is a folder, and .*model' is a file"):
        load_agent(as_path(tmp_path / "model"))


def test_files_are_told_which_prefix_they_may_lack(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, advice in (("net.onnx", "; did you mean 'onnx:net.onnx'?"), ("notes.md", "")):
        pathlib.Path(name).write_text("")
        message = f"{name!r} is a file; an agent is a folder with a checkpoint{advice}"
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            load_agent(name)


@pytest.mark.parametrize("name", ["x" * 300, "x" * 300 + ":5", "a\0b"])
def test_names_no_disk_can_hold_are_no_agents(name: str) -> None:
    with pytest.raises(ValueError, match="there is no agent"):
        load_agent(name)


def test_folders_are_checkpoints(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from tradgames_env.agents import checkpoint, searching

    loaded, efforts = [], []

    def load(path: pathlib.Path, effort: int | None) -> Agent:
        loaded.append(path)
        efforts.append(effort)
        return RandomAgent()

    monkeypatch.setattr(checkpoint, "read_record", lambda folder: None)
    monkeypatch.setattr(searching, "load_playing_agent", load)
    monkeypatch.chdir(tmp_path)
    for folder in ("trained", "random"):
        (tmp_path / folder).mkdir()
    for spec in ("trained", "./trained", str(tmp_path / "trained"), pathlib.Path("random"), "./random"):
        load_agent(spec)
    assert [path.resolve().name for path in loaded] == ["trained"] * 3 + ["random"] * 2
    load_agent("random")  # an agent's name wins over a folder's
    assert len(loaded) == 5
    (tmp_path / "odd:7").mkdir()
    for spec in ("trained:64", "./trained:0", "odd:7", "odd:7:16", pathlib.Path("odd:7")):
        load_agent(spec)
    assert [path.name for path in loaded[5:]] == ["trained", "trained", "odd:7", "odd:7", "odd:7"]
    assert efforts == [None] * 5 + [64, 0, None, 16, None]


def test_an_empty_folder_is_no_checkpoint(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("torch")
    from tradgames_env.agents.checkpoint import CheckpointError

    with pytest.raises(CheckpointError):
        load_agent(tmp_path)


def test_without_torch_a_checkpoint_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    for module in ("network", "searching"):
        monkeypatch.delitem(sys.modules, f"tradgames_env.agents.{module}", raising=False)
    with pytest.raises(ImportError, match=r"needs PyTorch, which is not installed: pip install torch"):
        load_agent(CHECKPOINTS / "puluc")


# -- prefixes --------------------------------------------------------------------------------------------------------

FACTORIES = """
import numpy
from tradgames_env.agents.greedy import GreedyAgent

def greedy():
    return GreedyAgent()

def chooser():
    return lambda position: position.legal_moves()[-1]

def name():
    return "mcts:30"

number = 3
"""


@pytest.fixture
def factories(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_agents.py").write_text(FACTORIES)
    (tmp_path / "needy.py").write_text("import a_library_that_is_not_there\n")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("factories")
def test_python_factories() -> None:
    assert type(load_agent("python:my_agents:greedy")) is GreedyAgent
    position = tg.Position("petteia")
    assert load_agent("python:my_agents:chooser").act(position) == position.legal_moves()[-1]
    assert load_agent("python:my_agents:name").name == "mcts:30"


@pytest.mark.usefixtures("factories")
@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("python:my_agents", "is 'python:MODULE:FACTORY', not 'python:my_agents'"),
        ("python::greedy", "is 'python:MODULE:FACTORY'"),
        ("python:my_agnts:greedy", "there is no module 'my_agnts'"),
        ("python:my_agents:greediest", "module 'my_agents' has no function 'greediest'"),
        ("python:my_agents:number", "module 'my_agents' has no function 'number'"),
    ],
)
def test_what_is_no_factory(spec: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - as above
        load_agent(spec)
    assert message in str(caught.value)


@pytest.mark.usefixtures("factories")
def test_a_library_that_a_factory_lacks_is_named() -> None:
    with pytest.raises(ModuleNotFoundError, match="a_library_that_is_not_there"):
        load_agent("python:needy:agent")


@pytest.mark.parametrize(
    ("spec", "library"),
    [("onnx:model.onnx", "onnxruntime"), ("hub:a/b", "huggingface_hub"), ("sb3:model.zip", "sb3_contrib")],
)
def test_a_prefix_says_what_to_install(spec: str, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    prefix = spec.partition(":")[0]
    monkeypatch.setitem(sys.modules, library, None)
    for module in ("agents.onnx", "integrations.hub", "integrations.sb3"):
        monkeypatch.delitem(sys.modules, f"tradgames_env.{module}", raising=False)
    with pytest.raises(ImportError, match=rf"need {library}, which is not installed: pip install .*\[{prefix}\]"):
        load_agent(spec)


def test_a_folder_that_is_no_checkpoint_is_refused_without_torch(tmp_path: pathlib.Path) -> None:
    code = (
        "import sys, tradgames_env as tg\n"
        "try:\n    tg.load_agent(sys.argv[1])\nexcept ValueError as error:\n    print(error, 'torch' in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "checkpoint.json" in said
    assert said.strip().endswith("False")


def test_an_unknown_home_is_said_in_one_line() -> None:
    with pytest.raises(ValueError, match="does not exist"):
        load_agent("~nobody-of-this-name/run")
