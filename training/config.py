"""What a training run is told: frozen, strictly checked records, read from TOML files that hold only the differences.

Unknown keys, wrong types and numbers out of range are errors that name the file, the key and what would be right.
"""

import difflib
import os
import pathlib
import tomllib
import types
import typing
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

import pydantic
from pydantic import Field, PositiveInt

from tradgames_env.rules.ruleset import Ruleset, load_ruleset

Share = Annotated[float, Field(ge=0.0, le=1.0)]
NonNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]


class ConfigError(ValueError):
    """A configuration cannot be used; the message names the file, the key and what would be right."""


class _Section(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)


class GameConfig(_Section):
    """Which game is learned."""

    name: str
    """Name of the game, see ``tradgames_env.games()``."""
    variant: str = "box"
    """Name of the variant."""
    options: dict[str, bool | int | float | str] = {}
    """Single rule options that replace the variant's."""

    @pydantic.field_validator("options", mode="before")
    @classmethod
    def _plain(cls, values: object) -> object:
        for name, value in values.items() if isinstance(values, dict) else ():
            if not isinstance(value, bool | int | float | str):
                raise ValueError(f"option {name!r} must be a number, a text or a truth value, not {value!r}")
        return values

    @pydantic.model_validator(mode="after")
    def _known(self) -> Self:
        self.ruleset()
        return self

    def ruleset(self) -> Ruleset:
        """The game bound to its options."""
        return load_ruleset(self.name, self.variant, **self.options)


class NetworkConfig(_Section):
    """Size of the network."""

    width: Annotated[int, Field(ge=1, le=4096)] = 128
    """Units of each hidden layer."""
    blocks: Annotated[int, Field(ge=0, le=64)] = 2
    """Residual blocks, one hidden layer each."""


class BudgetConfig(_Section):
    """When a run ends: at whichever limit comes first. Schedules run over the same limits."""

    minutes: Positive | None = None
    """Minutes of training, those before a resume included. Runs that end by the clock cannot repeat bit for bit."""
    steps: PositiveInt | None = None
    """Decisions played, rounded up to whole iterations."""

    @pydantic.model_validator(mode="after")
    def _limited(self) -> Self:
        if self.minutes is None and self.steps is None:
            raise ValueError("a limit is needed: give minutes, steps or both")
        return self


class RolloutConfig(_Section):
    """How games are played between two updates."""

    games: Annotated[int, Field(ge=1, le=1_000_000)] = 512
    """Games in parallel."""
    steps: Annotated[int, Field(ge=1, le=100_000)] = 32
    """Decisions played in each game before an update."""
    opening_share: Share = 0.25
    """Share of games that begin after random moves, which are not learned from."""
    opening_plies: PositiveInt = 8
    """Most random moves before such a game; their number is drawn evenly from 1 on."""
    careless_share: Share = 0.0
    """Share of sides that play carelessly in a game: some of their moves are random and not learned from."""
    careless_level: Share = 0.3
    """Largest share of random moves of a careless side; each draws its own, evenly from 0 on."""


class PPOConfig(_Section):
    """Proximal policy optimisation (Schulman et al., 2017)."""

    epochs: PositiveInt = 3
    """Passes over the decisions of a rollout."""
    minibatch_size: PositiveInt = 2048
    """Decisions in one gradient step, about: a rollout is divided evenly."""
    learning_rate: Positive = 1e-3
    """Of Adam at the start."""
    final_learning_rate: NonNegative = 0.0
    """Of Adam at the end; linear in between."""
    gamma: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    """Discount, for each decision of either side."""
    gae_lambda: Share = 0.9
    """Lambda of the generalised advantages (Schulman et al., 2016), for each decision of either side."""
    clip_range: Positive = 0.2
    """Largest change of a probability ratio that is rewarded."""
    entropy: NonNegative = 0.01
    """Weight of the entropy bonus at the start."""
    final_entropy: NonNegative = 0.001
    """Weight of the entropy bonus at the end; linear in between."""
    value_weight: NonNegative = 0.5
    """Weight of the squared error of the value."""
    margin_weight: NonNegative = 0.25
    """Weight of the squared error of the margin head, an auxiliary target."""
    max_grad_norm: Positive = 0.5
    """Longer gradients are cut to this length."""
    target_kl: Positive | None = None
    """Epochs stop early once the policy has moved this far from the one that played; never when absent."""


class ShapingConfig(_Section):
    """Reward for the margin (captures, pieces home), for games that random play hardly ever decides."""

    weight: NonNegative = 0.0
    """Reward for the largest possible final margin at the start of the run; a win is 1."""
    until: Share = 0.6
    """Share of the run after which the weight has fallen to 0, linearly: the end is trained on results alone."""


class PoolConfig(_Section):
    """Frozen past policies that play one side of some games."""

    share: Share = 0.15
    """Share of games against a past policy; decided when a game starts."""
    every: PositiveInt = 10
    """Iterations between two snapshots."""
    capacity: PositiveInt = 8
    """Snapshots opponents are drawn from: the latest."""
    recency: NonNegative = 0.0
    """0 draws them evenly; r gives the k-th oldest a weight of k ** r."""


class PlayConfig(_Section):
    """How the trained network is meant to be played with; noted in its checkpoints."""

    lookahead: bool = True
    """Choose by the network's values of the positions one move (and throw) ahead, instead of by its policy."""
    margin_weight: Annotated[float, Field(ge=0.0, le=1000.0)] = 0.0
    """Worth of the largest possible gain of margin in these values; a win is 1."""


class TrainConfig(_Section):
    """A whole training run."""

    game: GameConfig
    budget: BudgetConfig
    network: NetworkConfig = NetworkConfig()
    rollout: RolloutConfig = RolloutConfig()
    ppo: PPOConfig = PPOConfig()
    shaping: ShapingConfig = ShapingConfig()
    pool: PoolConfig = PoolConfig()
    play: PlayConfig = PlayConfig()
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Everything random follows from it."""
    device: str = "auto"
    """Where the network learns: "cpu", "cuda", or "auto" for CUDA where there is one."""
    threads: Annotated[int, Field(ge=1, le=1024)] | None = None
    """Cores to use; all when absent. Results may differ between numbers of cores in the last digits."""
    save_minutes: Positive = 2.0
    """Minutes between two checkpoints; the state for a resume is saved at the same times."""
    progress: Literal["auto", "off"] = "auto"
    """A progress bar where there is a terminal, or none."""


def load_config(path: str | os.PathLike[str], overrides: Mapping[str, object] | None = None) -> TrainConfig:
    """Read a training configuration.

    Args:
        path: a TOML file.
        overrides: values by dotted key, such as ``{"ppo.epochs": 4, "budget.minutes": "10"}``; they win over the
            file. Texts are read as TOML values where they are such, so they may come from a command line. None takes a
            key away.

    Raises:
        ConfigError: the file is missing or no TOML, or a key is unknown or has a wrong value.
    """
    path = pathlib.Path(path)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: it cannot be read as TOML ({error})") from None
    for key, value in (overrides or {}).items():
        _override(data, key, value)
    return parse_config(data, str(path))


def parse_config(data: Mapping[str, Any], source: str) -> TrainConfig:
    """The configuration in nested mappings, as TOML or a checkpoint's JSON gives them.

    Args:
        data: sections by name.
        source: where they came from, for messages.

    Raises:
        ConfigError: a key is unknown or missing, or has a wrong value; all such keys are named.
    """
    try:
        return TrainConfig.model_validate(data)
    except pydantic.ValidationError as error:
        problems = "; ".join(_problem(entry) for entry in error.errors())
        raise ConfigError(f"{source}: {problems}") from None


def _override(data: dict[str, Any], key: str, value: object) -> None:
    *sections, last = key.split(".")
    for section in sections:
        data = data.setdefault(section, {})
        if not isinstance(data, dict):
            raise ConfigError(f"override {key!r}: {section!r} is a value, not a section")
    if value is None:
        data.pop(last, None)
    else:
        data[last] = _toml_value(value) if isinstance(value, str) else value


def _toml_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _problem(entry: Any) -> str:
    """One of pydantic's errors in words."""
    path = [str(part) for part in entry["loc"] if not str(part).startswith(("function-", "constrained-"))]
    key = ".".join(path)
    if entry["type"] == "extra_forbidden":
        known = _known_keys(path[:-1])
        close = difflib.get_close_matches(path[-1], known, n=1)
        guess = f"did you mean {close[0]!r}? " if close else ""
        return f"unknown key {key!r}; {guess}known: {', '.join(known)}"
    if entry["type"] == "missing":
        return f"key {key!r} is missing"
    message = entry["msg"].removeprefix("Value error, ")
    if entry["type"] == "value_error":
        return f"{key}: {message}" if key else message
    return f"{key}: {message[0].lower()}{message[1:]}, not {entry['input']!r}"


def _known_keys(path: list[str]) -> list[str]:
    """Keys of the section at ``path``."""
    model: type[pydantic.BaseModel] = TrainConfig
    for part in path:
        annotation = model.model_fields[part].annotation
        if typing.get_origin(annotation) in (types.UnionType, typing.Union):
            return []
        assert isinstance(annotation, type)
        model = annotation
    return list(model.model_fields)
