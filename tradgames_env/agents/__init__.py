"""What plays: built-in agents by name, anything else that fits the ``Agent`` protocol, and ``load_agent`` for all."""

import dataclasses
import difflib
import importlib
import os
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

from tradgames_env.agents.base import Agent, BaseAgent
from tradgames_env.agents.foreign import PREFIXES, maker_of
from tradgames_env.position import Position

__all__ = ["AGENT_NAMES", "Agent", "AgentSpec", "BaseAgent", "FunctionAgent", "load_agent", "split_effort"]

Chooser = Callable[[Position], str | int]
AgentSpec = Agent | Chooser | str | os.PathLike[str]
"""What ``load_agent`` takes."""

_LONGEST_NAME = 1000
_MEMBERS = ("act", "act_many", "name", "policy", "seed", "value")


class FunctionAgent(BaseAgent):
    """A function from positions to moves as an agent.

    Args:
        choose: is given a copy of the position and returns a move in notation or an action id.
    """

    def __init__(self, choose: Chooser) -> None:
        super().__init__()
        self._choose = choose
        self.name: str = getattr(choose, "__name__", type(choose).__name__)

    def act(self, position: Position) -> str:
        """The move the function returns, in notation.

        Raises:
            IllegalMoveError: the move cannot be played here, the game is over, or a throw is due.
            NotationError: the move cannot be read.
        """
        return position.notation(position.parse(self._choose(position.copy())))

    def policy(self, position: Position) -> dict[str, float]:
        """1 for the move the function returns when asked once, 0 for the others.

        Raises:
            IllegalMoveError: as ``act``.
            NotationError: as ``act``.
        """
        chosen = self.act(position)
        return {move: float(move == chosen) for move in position.legal_moves()}


@dataclasses.dataclass(frozen=True)
class _Named:
    """A built-in agent: its class, imported when first asked for, and what the number after its name means."""

    module: str
    cls: str
    budget: str | None = None
    default: int = 0

    def make(self, name: str, budget: str | None) -> Agent:
        """The agent called ``name``, with the text after the colon if there was one."""
        if budget is not None and self.budget is None:
            raise ValueError(f"agent {name!r} takes no number, so write {name!r}, not {name + ':' + budget!r}")
        cls = getattr(importlib.import_module(f"{__name__}.{self.module}"), self.cls)
        if self.budget is None:
            return _checked(cls())
        return _checked(cls(self.default if budget is None else self._count(name, budget)))

    def _count(self, name: str, budget: str) -> int:
        # Twenty digits are too many for any agent, and few enough for int().
        count = int(budget[:20]) if budget.isascii() and budget.isdigit() else 0
        if count == 0:
            raise ValueError(
                f"the number after {name!r} is its {self.budget} and must be a positive integer, "
                f"such as '{name}:{self.default}', not {budget!r}"
            )
        return count


_NAMED: Mapping[str, _Named] = {
    "random": _Named("random", "RandomAgent"),
    "greedy": _Named("greedy", "GreedyAgent"),
    "alphabeta": _Named("alphabeta", "AlphaBetaAgent", budget="depth", default=2),
    "mcts": _Named("mcts", "MCTSAgent", budget="simulations", default=200),
    "perfect": _Named("perfect", "PerfectAgent"),
}

AGENT_NAMES: tuple[str, ...] = tuple(
    name if named.budget is None else f"{name}:{named.budget.upper()}" for name, named in _NAMED.items()
)
"""The names ``load_agent`` knows, for help texts: ``"random"``, ``"mcts:SIMULATIONS"`` and so on."""


def load_agent(spec: AgentSpec) -> Agent:
    """The agent that ``spec`` stands for.

    Args:
        spec: an agent (returned as it is); a function from a position to a move; a name, with a number after a colon
            where it has a budget ("random", "greedy", "alphabeta:3", "mcts:1000"); a policy that comes with the package
            ("pretrained:petteia", "pretrained:petteia/fr6"); an agent of another library
            ("sb3:PATH", "openspiel:mcts:100"); an exported network ("onnx:FILE"); a checkpoint on the Hugging Face hub
            ("hub:USER/REPO"); what a Python function returns ("python:MODULE:FACTORY", which runs the code of that
            module); or the folder of a checkpoint, as a path, a text with a path separator, or the name of a folder
            that exists and is no agent's name. As a text, a folder may end in a number after a colon, how hard to
            search for a move ("runs/first/checkpoints/final:64"): plies where the checkpoint recommends nothing but to
            look all throws ahead, simulations elsewhere, 0 for the policy alone. Without it, what the checkpoint
            recommends.

    Raises:
        ValueError: no such agent or folder, a number that is wrong or not wanted, or something else altogether;
            a checkpoint that cannot be used is a ``CheckpointError``, which is one.
        ImportError: the folder needs PyTorch, or the prefix another library, which is not installed.
    """
    if isinstance(spec, str):
        return _by_text(spec)
    if isinstance(spec, os.PathLike):
        return _by_folder(pathlib.Path(spec))
    if isinstance(spec, type):
        raise ValueError(f"an agent is an instance; pass {spec.__name__}(), not the class")
    if isinstance(spec, Agent):
        return spec
    if callable(spec):
        return FunctionAgent(spec)
    raise ValueError(f"{_known()}, an Agent or a function from position to move; not {_described(spec)}")


def _by_text(text: str) -> Agent:
    name, colon, budget = text.partition(":")
    if name in _NAMED:
        return _NAMED[name].make(name, budget if colon else None)
    make = maker_of(name) if colon else None
    if make is not None:
        return load_agent(make(budget))
    # os.path says no where pathlib raises: of names that are too long for the disk, or no names at all.
    separators = [separator for separator in (os.sep, os.altsep, "/") if separator]
    if len(text) > _LONGEST_NAME:
        raise ValueError(f"an agent's name or folder has at most {_LONGEST_NAME:,} characters, not {len(text):,}")
    folder, effort = split_effort(text)
    if any(separator in folder for separator in separators) or os.path.isdir(folder):
        return _by_folder(pathlib.Path(folder), effort)
    if os.path.isfile(text):
        foreign = {".onnx": "onnx:", ".zip": "sb3:"}.get(pathlib.Path(text).suffix)
        advice = f"; did you mean {foreign + text!r}?" if foreign else ""
        raise ValueError(f"{text!r} is a file; an agent is a folder with a checkpoint{advice}")
    close = difflib.get_close_matches(name.lower(), _NAMED, n=1)
    guess = f"did you mean {close[0]!r}? " if close else ""
    raise ValueError(f"there is no agent {text!r}; {guess}{_known()}")


def split_effort(text: str) -> tuple[str, int | None]:
    """The folder a text means and the number after its last colon, None where there is none."""
    folder, _, number = text.rpartition(":")
    if not folder or not (number.isascii() and number.isdigit()) or os.path.isdir(text):
        return text, None
    return folder, int(number[:20])  # as many digits as are too many


def _by_folder(folder: pathlib.Path, effort: int | None = None) -> Agent:
    folder = pathlib.Path(os.path.expanduser(folder))  # pathlib's own raises where a home is unknown
    if not os.path.isdir(folder):
        problem = "is a file" if os.path.exists(folder) else "does not exist"
        raise ValueError(f"a checkpoint is a folder, and {str(folder)!r} {problem}")
    from tradgames_env.agents.checkpoint import read_record

    read_record(folder)  # a wrong folder is refused before PyTorch is loaded for it
    try:
        from tradgames_env.agents.searching import load_playing_agent

        return _checked(load_playing_agent(folder, effort))
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError(
            f"the checkpoint {str(folder)!r} needs PyTorch, which is not installed: "
            "pip install torch, or pip install 'tradgames-env[train]' to train as well",
            name="torch",
        ) from error


def _checked(agent: Any) -> Agent:
    assert isinstance(agent, Agent)
    return agent


def _known() -> str:
    return f"known: {', '.join(AGENT_NAMES + PREFIXES)}, or the folder of a checkpoint"


def _described(spec: object) -> str:
    missing = [member for member in _MEMBERS if not hasattr(spec, member)]
    if len(missing) == len(_MEMBERS):
        return repr(spec)
    return f"{spec!r}, which lacks {', '.join(missing)} of the Agent protocol"
