"""What a training run is told: frozen, strictly checked records, read from TOML files that hold only the differences.

Unknown keys, wrong types and numbers out of range are errors that name the file, the key and what would be right.
"""

import abc
import difflib
import os
import pathlib
import tomllib
import typing
from collections.abc import Mapping
from types import UnionType
from typing import Annotated, Any, Literal, Self, get_args, get_origin

import pydantic
from pydantic import Field

from tradgames_env.rules.ruleset import Ruleset, load_ruleset

Share = Annotated[float, Field(ge=0.0, le=1.0)]
NonNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
# Far above what makes sense, and below what compiled code and NumPy cannot count.
Count = Annotated[int, Field(gt=0, le=10**12)]

_LONGEST_SHOWN = 200


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


class SearchNetworkConfig(NetworkConfig):
    """Size and kind of the network."""

    trunk: Literal["mlp", "conv"] = "mlp"
    """Hidden layers: "mlp" reads the board as a list, "conv" as planes; on a CPU the first learns more in less time."""


class BudgetConfig(_Section):
    """When a run ends: at whichever limit comes first. Schedules run over the same limits."""

    minutes: Positive | None = None
    """Minutes of training, those before a resume included. Runs that end by the clock cannot repeat bit for bit."""
    steps: Count | None = None
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
    opening_plies: Count = 8
    """Most random moves before such a game; their number is drawn evenly from 1 on."""
    careless_share: Share = 0.0
    """Share of sides that play carelessly in a game: some of their moves are random and not learned from."""
    careless_level: Share = 0.3
    """Largest share of random moves of a careless side; each draws its own, evenly from 0 on."""


class PPOConfig(_Section):
    """Proximal policy optimisation (Schulman et al., 2017)."""

    epochs: Count = 3
    """Passes over the decisions of a rollout."""
    minibatch_size: Count = 2048
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
    every: Count = 10
    """Iterations between two snapshots."""
    capacity: Count = 8
    """Snapshots opponents are drawn from: the latest."""
    recency: NonNegative = 0.0
    """0 draws them evenly; r gives the k-th oldest a weight of k ** r (ppo)."""


class PlayConfig(_Section):
    """How the trained network is meant to be played with; noted in its checkpoints."""

    lookahead: bool = True
    """Choose by the network's values of the positions one move (and throw) ahead, instead of by its policy."""
    margin_weight: Annotated[float, Field(ge=0.0, le=1000.0)] = 0.0
    """Worth of the largest possible gain of margin in these values; a win is 1."""
    simulations: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """Choose by a tree search of so many simulations; 0 for none. With plies as well, in games without dice."""
    plies: Annotated[int, Field(ge=0, le=3)] = 0
    """Choose by the values after so many moves and the throws between them, in games of dice; 0 for none."""


class SearchConfig(_Section):
    """How self-play looks for better moves than the network's own."""

    improver: Literal["gumbel", "expectimax"] = "gumbel"
    """"gumbel": Gumbel AlphaZero search (Danihelka et al., 2022); "expectimax": the expected values one decision ahead,
    over every throw."""
    simulations: Annotated[int, Field(ge=1, le=100_000)] = 32
    """Simulations of a full search (gumbel)."""
    start_simulations: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Simulations of a full search at the start of the run, from which they grow evenly; as many when absent."""
    fast_simulations: Annotated[int, Field(ge=1, le=100_000)] = 8
    """Simulations of a fast search, whose policy is not learned from (gumbel)."""
    full_share: Share = 0.25
    """Share of the decisions that get a full search (gumbel)."""
    considered: Count = 16
    """Most moves the root of a search compares (gumbel)."""
    c_visit: NonNegative = 50.0
    """Visits added to the largest count before values are scaled (gumbel)."""
    c_scale: Positive = 0.1
    """Weight of values against the policy's logits (gumbel)."""
    temperature: Positive = 0.05
    """Of the policy made of values, in wins: small ones prefer the best move alone (expectimax)."""


class SelfPlayConfig(_Section):
    """How games are played between two rounds of learning."""

    shards: Annotated[int, Field(ge=1, le=100_000)] = 4
    """Parts that are played independently, on as many cores as there are; results follow from their number."""
    games: Annotated[int, Field(ge=1, le=1_000_000)] = 128
    """Games of a shard, played in lockstep."""
    decisions: Annotated[int, Field(ge=1, le=100_000)] = 32
    """Decisions played in each game in an iteration."""
    horizon: Annotated[int, Field(ge=0, le=100_000)] = 64
    """Decisions after which a target no longer waits for the end of its game."""
    trace: Share = 0.97
    """Lambda of the value targets: 1 learns from results alone, 0 from the next decision's search."""
    early_plies: Annotated[int, Field(ge=0, le=10_000)] = 8
    """First decisions of a game that are drawn from the improved policy; later ones are the search's best."""
    random_share: Share = 0.0
    """Share of the decisions in which a random move is played; what comes of it is not learned from (alphazero)."""
    spread: Annotated[int, Field(ge=0, le=100_000)] = 0
    """Most random moves in the games of the first iteration before they count, so that they are not all in the same
    phase; their number is drawn evenly."""
    opening_share: Share = 0.1
    """Share of games that begin after random moves."""
    opening_plies: Count = 4
    """Most random moves before such a game; their number is drawn evenly from 1 on."""
    sparse_share: Share = 0.0
    """Share of games that begin from a random position with few pieces, at the start of the run."""
    final_sparse_share: Share = 0.0
    """The same at the end; linear in between."""
    sparse_pieces: Annotated[int, Field(ge=1, le=1_000)] = 8
    """Most pieces of a side in such a position."""
    sparse_decisions: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Decisions after which a game from such a position is broken off, and its end learned from searches alone; never
    when absent."""
    overlap: bool = False
    """Learn from the samples so far while more are played, with weights one iteration older; it pays for networks too
    small for several cores to learn."""
    engine: Literal["serial", "process", "ray"] = "process"
    """Where shards are played: here, in processes of this machine, or on a Ray cluster. Results are the same."""
    workers: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Processes, or CPUs of a cluster that is started here; as many as there are cores when absent."""
    address: str | None = None
    """Of a running Ray cluster, HOST:PORT or "auto" for this machine's; one is started here when absent."""

    @pydantic.model_validator(mode="after")
    def _for_ray(self) -> Self:
        if self.address is not None and self.engine != "ray":
            raise ValueError(f"address is that of a Ray cluster, so engine must be 'ray', not {self.engine!r}")
        return self


class ReplayConfig(_Section):
    """Which of the samples are learned from."""

    first_window: Count = 50_000
    """Newest samples that are drawn from at the start of the run."""
    window: Count = 500_000
    """The same at the end; linear in between."""
    fewest: Annotated[int, Field(ge=0, le=1_000_000_000)] = 0
    """Samples before the first gradient step."""
    reuse: Positive = 2.0
    """How often a sample is drawn, on average."""

    @pydantic.model_validator(mode="after")
    def _within_reach(self) -> Self:
        if self.fewest > self.window:
            raise ValueError(f"fewest is {self.fewest:,}, and a window of {self.window:,} never holds so many")
        return self


class DeepeningConfig(_Section):
    """Self-play by alpha-beta, and what its evaluation learns."""

    positions: Annotated[int, Field(ge=1, le=100_000_000)] = 400
    """Positions visited for a move."""
    margin_weight: NonNegative = 0.5
    """What one more in the margin adds to the log odds before anything was learned."""
    trust: Share = 0.7
    """Weight of what the search said; the rest is how the game ended."""
    batch_size: Annotated[int, Field(ge=1, le=1_000_000)] = 1024
    """Samples of a step."""
    learning_rate: Positive = 2e-3
    """Of Adam, at the start."""
    final_learning_rate: NonNegative = 2e-4
    """At the end; it falls linearly."""


class LearnerConfig(_Section):
    """How the network learns from samples."""

    batch_size: Annotated[int, Field(ge=1, le=1_000_000)] = 512
    """Samples of a gradient step."""
    learning_rate: Positive = 1e-3
    """Of AdamW at the start."""
    final_learning_rate: NonNegative = 1e-4
    """Of AdamW at the end; half a cosine in between."""
    weight_decay: NonNegative = 1e-4
    """Of AdamW."""
    max_grad_norm: Positive = 2.0
    """Longer gradients are cut to this length."""
    average: Share = 0.98
    """Decay of the averaged weights that play, for each gradient step."""
    policy_weight: NonNegative = 1.0
    """Weight of the policy's cross-entropy."""
    value_weight: NonNegative = 1.0
    """Weight of the value's loss."""
    margin_weight: NonNegative = 0.15
    """Weight of the squared error of the margin head, an auxiliary target."""
    mirror: bool = True
    """Show half of the samples reflected, in games that have this symmetry."""
    turns: bool = False
    """Show the samples turned by quarters, in games that have this symmetry: on square boards."""
    surprise_share: Share = 0.5
    """Share of the policy's weight that goes to samples by how far the search moved the policy."""


class LearnedGameConfig(GameConfig):
    """One of several games that a network learns, with those settings that differ from the run's own."""

    shaping: ShapingConfig = ShapingConfig()
    pool: PoolConfig = PoolConfig()
    search: SearchConfig = SearchConfig()
    selfplay: SelfPlayConfig = SelfPlayConfig()
    replay: ReplayConfig = ReplayConfig()

    @property
    def label(self) -> str:
        """For file names and metrics."""
        return f"{self.name}_{self.variant}"


_OF_A_GAME = tuple(name for name in LearnedGameConfig.model_fields if name not in GameConfig.model_fields)
_OF_THE_RUN = (
    ("selfplay", "engine"),
    ("selfplay", "workers"),
    ("selfplay", "address"),
    ("selfplay", "overlap"),
    ("pool", "every"),
    ("pool", "capacity"),
    ("replay", "reuse"),
)
"""Settings in these sections that cannot differ between games."""


class TrainConfig(_Section, abc.ABC):
    """What every training run is told; each method adds its own sections."""

    budget: BudgetConfig
    network: NetworkConfig = NetworkConfig()
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
    """Minutes between two checkpoints; the state for a resume is saved then too, and by search every few seconds."""
    rating_games: Annotated[int, Field(ge=0, le=10_000, multiple_of=2)] = 32
    """Games of a new checkpoint against each of the two before it, for the Elo so far; 0 for none."""
    progress: Literal["auto", "off"] = "auto"
    """A progress bar and a table where there is a terminal, or none."""

    @abc.abstractmethod
    def rulesets(self) -> tuple[Ruleset, ...]:
        """The games the network plays."""


class PPOTrainConfig(TrainConfig):
    """A training run by masked PPO."""

    game: GameConfig
    method: Literal["ppo"] = "ppo"
    """How it learns: "ppo" from playing by the network alone, "alphazero" by search, "alphabeta" to judge positions."""
    rollout: RolloutConfig = RolloutConfig()
    ppo: PPOConfig = PPOConfig()

    def rulesets(self) -> tuple[Ruleset, ...]:
        """The game the network plays."""
        return (self.game.ruleset(),)


class AlphaZeroTrainConfig(TrainConfig):
    """A training run by search: the network learns what its search finds."""

    game: GameConfig | None = None
    games: Annotated[tuple[LearnedGameConfig, ...], Field(strict=False)] = ()
    """Several games for one network, in place of ``game``, each with what differs for it from the run's sections."""
    method: Literal["alphazero"]
    """As of ``PPOTrainConfig``."""
    network: SearchNetworkConfig = SearchNetworkConfig()
    search: SearchConfig = SearchConfig()
    selfplay: SelfPlayConfig = SelfPlayConfig()
    replay: ReplayConfig = ReplayConfig()
    learner: LearnerConfig = LearnerConfig()

    @pydantic.model_validator(mode="before")
    @classmethod
    def _fill_games(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Give each game the run's settings, where it has none of its own."""
        games = data.get("games")
        if not isinstance(games, list):
            return data
        return {**data, "games": [_filled(game, data) if isinstance(game, dict) else game for game in games]}

    @pydantic.model_validator(mode="after")
    def _agreed(self) -> Self:
        if (self.game is None) != bool(self.games):
            raise ValueError("give either game, for one game, or games, for several")
        labels = [game.label for game in self.games]
        if len(set(labels)) < len(labels):
            raise ValueError("two of the games have the same name and variant")
        for game in self.games:
            for section, name in _OF_THE_RUN:
                if getattr(getattr(game, section), name) != getattr(getattr(self, section), name):
                    raise ValueError(f"{section}.{name} of {game.label} is that of all games; give it in [{section}]")
        for game in self.learned():
            if game.search.improver == "expectimax" and game.pool.share > 0.0:
                raise ValueError(
                    f"pool.share of {game.label} must be 0, not {game.pool.share:g}: with search.improver 'expectimax' "
                    "only the network that learns plays"
                )
        if len(self.games) > self.learner.batch_size:
            raise ValueError("learner.batch_size is smaller than the number of games")
        return self

    def learned(self) -> tuple[LearnedGameConfig, ...]:
        """The games the network learns, one or several, with all their settings."""
        if self.game is None:
            return self.games
        sections = {name: getattr(self, name) for name in _OF_A_GAME}
        return (LearnedGameConfig.model_construct(**dict(self.game), **sections),)

    def rulesets(self) -> tuple[Ruleset, ...]:
        """The games the network plays, in the order of its policy heads."""
        return tuple(game.ruleset() for game in self.learned())


def _filled(game: dict[str, Any], run: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a game, those of the run where it has none; what is no section stays for the checks."""
    sections = {}
    for name in _OF_A_GAME:
        common, own = run.get(name, {}), game.get(name, {})
        sections[name] = {**common, **own} if isinstance(common, dict) and isinstance(own, dict) else own
    return {**game, **sections}


class AlphaBetaTrainConfig(TrainConfig):
    """A training run of the evaluation of alpha-beta, for games without dice."""

    game: GameConfig
    method: Literal["alphabeta"]
    """As of ``PPOTrainConfig``."""
    deepening: DeepeningConfig = DeepeningConfig()
    selfplay: SelfPlayConfig = SelfPlayConfig()
    replay: ReplayConfig = ReplayConfig()

    def rulesets(self) -> tuple[Ruleset, ...]:
        """The game the network plays."""
        return (self.game.ruleset(),)


METHODS: Mapping[str, type[TrainConfig]] = {
    "ppo": PPOTrainConfig,
    "alphabeta": AlphaBetaTrainConfig,
    "alphazero": AlphaZeroTrainConfig,
}
"""The record of each method's runs."""


def all_settings() -> dict[str, pydantic.fields.FieldInfo]:
    """Every setting of any method by its dotted name; one that methods share stands once, as in the first of them."""
    found: dict[str, pydantic.fields.FieldInfo] = {}
    for model in METHODS.values():
        for name, field in model.model_fields.items():
            section = _section_of(field)
            entries = {name: field} if section is None else section.model_fields
            prefix = "" if section is None else f"{name}."
            for key, entry in entries.items():
                found.setdefault(prefix + key, entry)
    return found


def _section_of(field: pydantic.fields.FieldInfo) -> type[pydantic.BaseModel] | None:
    """The section that a field of a configuration is, or may be; None where it holds a value or a list."""
    kinds = [field.annotation, *(get_args(field.annotation) if get_origin(field.annotation) is UnionType else ())]
    sections = (kind for kind in kinds if isinstance(kind, type) and issubclass(kind, pydantic.BaseModel))
    return next(sections, None)


def load_config(path: str | os.PathLike[str], overrides: Mapping[str, object] | None = None) -> TrainConfig:
    """Read a training configuration.

    Args:
        path: a TOML file, or the name of one that comes with the package, such as "puluc".
        overrides: values by dotted key, such as ``{"ppo.epochs": 4, "budget.minutes": "10"}``; they win over the
            file. Texts are read as TOML values where they are such, so they may come from a command line. None takes a
            key away.

    Raises:
        ConfigError: the file is missing or no TOML, or a key is unknown or has a wrong value.
    """
    path = _found(pathlib.Path(path))
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: it cannot be read as TOML ({error})") from None
    for key, value in (overrides or {}).items():
        _override(data, key, value)
    return parse_config(data, str(path))


def _found(path: pathlib.Path) -> pathlib.Path:
    """The file itself, or where it is only a name the bundled file of that name.

    Raises:
        ConfigError: there is neither.
    """
    if path.exists():
        return path
    package = pathlib.Path(__file__).parent
    installed = package / "configs"
    folder = installed if installed.is_dir() else package.parent / "configs"
    bundled = folder / f"{path}.toml"
    if path.parent == pathlib.Path() and bundled.is_file():
        return bundled
    names = ", ".join(sorted(known.stem for known in folder.glob("*.toml")))
    raise ConfigError(f"{path}: there is no such file; configurations that come with the package: {names}")


def parse_config(data: Mapping[str, Any], source: str) -> TrainConfig:
    """The configuration in nested mappings, as TOML or a checkpoint's JSON gives them.

    Args:
        data: sections by name.
        source: where they came from, for messages.

    Raises:
        ConfigError: a key is unknown or missing, or has a wrong value; all such keys are named.
    """
    method = data.get("method", "ppo")
    if not isinstance(method, str) or method not in METHODS:
        known = " or ".join(map(repr, METHODS))
        raise ConfigError(f"{source}: method: input should be {known}, not {_shown(method)}")
    model = METHODS[method]
    try:
        return model.model_validate(data)
    except pydantic.ValidationError as error:
        entries = error.errors()
        said = {entry["loc"] for entry in entries}
        # What is wrong in a section of the run is wrong in that of each game.
        entries = [entry for entry in entries if not (entry["loc"][:1] == ("games",) and entry["loc"][2:] in said)]
        problems = "; ".join(_problem(entry, model) for entry in entries)
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


def _problem(entry: Any, model: type[TrainConfig]) -> str:
    """One of pydantic's errors in words."""
    path = [str(part) for part in entry["loc"] if not str(part).startswith(("function-", "constrained-"))]
    key = ".".join(path)
    if entry["type"] == "extra_forbidden":
        known = _known_keys(model, path[:-1])
        close = difflib.get_close_matches(path[-1], known, n=1)
        guess = f"did you mean {close[0]!r}? " if close else ""
        return f"unknown key {key!r}; {guess}known: {', '.join(known)}"
    if entry["type"] == "missing":
        return f"key {key!r} is missing"
    message = entry["msg"].removeprefix("Value error, ")
    if entry["type"] == "value_error":
        return f"{key}: {message}" if key else message
    return f"{key}: {message[0].lower()}{message[1:]}, not {_shown(entry['input'])}"


def _shown(value: object) -> str:
    """A value as a message shows it: cut where it is long, and Python refuses to write very long integers."""
    try:
        text = repr(value)
    except ValueError:
        return "a number of thousands of digits"
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "..."


def _known_keys(model: type[pydantic.BaseModel], path: list[str]) -> list[str]:
    """Keys of the section of ``model`` at ``path``."""
    for part in path:
        if not part.isdigit():
            model = _section_in(model.model_fields[part].annotation)
    return list(model.model_fields)


def _section_in(annotation: Any) -> type[pydantic.BaseModel]:
    """The section that a setting is, may be, or is a list of."""
    kinds = (annotation, *typing.get_args(annotation))
    return next(kind for kind in kinds if isinstance(kind, type) and issubclass(kind, pydantic.BaseModel))
