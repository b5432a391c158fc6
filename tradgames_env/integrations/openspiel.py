"""OpenSpiel: every game as an OpenSpiel game, OpenSpiel's bots as our agents and our agents as its bots.

Importing the module registers the games; one is loaded by
``pyspiel.load_game("python_puluc(variant=mini,options=max_turns:200;pieces:3)")``.
"""

from typing import Any

import numpy as np
import pyspiel
from open_spiel.python.algorithms import mcts
from open_spiel.python.observation import IIGObserverForPublicInfoGame

from tradgames_env.agents import load_agent
from tradgames_env.agents.base import BaseAgent, deciding_moves
from tradgames_env.encoding import Encoder
from tradgames_env.position import Position
from tradgames_env.rules.errors import OptionError
from tradgames_env.rules.registry import games, load_rules
from tradgames_env.rules.ruleset import Ruleset, load_ruleset

MOST_MOVES = 10_000
"""Decisions after which OpenSpiel's view of a game ends as a draw. Random play ends long before, but OpenSpiel needs a
bound, and rules that limit games by repetition or quiet moves state none."""


_BOOLS = {"True": True, "False": False}


def _game_type(game: str, has_chance: bool) -> Any:
    modes = pyspiel.GameType.ChanceMode
    return pyspiel.GameType(
        short_name=f"python_{game}",
        long_name=load_rules(game).title,
        dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
        chance_mode=modes.EXPLICIT_STOCHASTIC if has_chance else modes.DETERMINISTIC,
        information=pyspiel.GameType.Information.PERFECT_INFORMATION,
        utility=pyspiel.GameType.Utility.ZERO_SUM,
        reward_model=pyspiel.GameType.RewardModel.TERMINAL,
        max_num_players=4,
        min_num_players=2,
        provides_information_state_string=True,
        provides_information_state_tensor=False,
        provides_observation_string=True,
        provides_observation_tensor=True,
        parameter_specification={"variant": "box", "options": ""},
    )


class SpielGame(pyspiel.Game):  # type: ignore[misc]
    """One of our games.

    Parameters are ``variant`` and ``options``, those of the rules that replace the variant's, as a text of
    ``name:value`` separated by semicolons.

    Throws are chance nodes whose outcomes are numbered in the order of ``Position.chance_outcomes``. Actions are those
    of the environments, in the mover's frame; the mover may be the same player twice in a row. Returns are those of the
    rules; a game stopped after ``MOST_MOVES`` decisions returns zeros.

    Raises:
        OptionError: no such variant or option, or a value the game refuses.
    """

    name = ""
    """Of the game; each registered class has its own."""

    def __init__(self, params: Any = None) -> None:
        given = dict(params or {})
        variant = given.get("variant", "box")
        self.ruleset = load_ruleset(self.name, variant, **_read_options(self.name, given.get("options", "")))
        super().__init__(_game_type(self.name, bool(self.ruleset.chance_kinds)), _game_info(self.ruleset), given)

    def new_initial_state(self, state: str | None = None) -> "SpielState":
        """The start, or the position that a text describes, which ``str(state)`` gives back.

        Raises:
            NotationError: the text cannot be read, or no such position can arise.
        """
        return SpielState(self, Position.from_ruleset(self.ruleset, state, chance="explicit"))

    def state_of(self, position: Position) -> "SpielState":
        """A position of this game as a state, with its repetition history and without one of OpenSpiel's own.

        Raises:
            ValueError: the position belongs to another game or other options.
        """
        if position.ruleset is not self.ruleset:
            raise ValueError(f"a position of {position.ruleset.label} is no state of {self.ruleset.label}")
        return SpielState(self, Position.from_rows(self.ruleset, *position.rows, chance="explicit"))

    def max_chance_nodes_in_history(self) -> int:
        """As many as decisions."""
        return MOST_MOVES if self.ruleset.chance_kinds else 0

    def make_py_observer(self, iig_obs_type: Any = None, params: Any = None) -> Any:
        """The planes of ``Encoder`` as a tensor; see ``encoding.PLANES``."""
        if iig_obs_type is None or (iig_obs_type.public_info and not iig_obs_type.perfect_recall):
            return PlanesObserver(self.ruleset, params)
        return IIGObserverForPublicInfoGame(iig_obs_type, params)


def _read_options(game: str, text: str) -> dict[str, Any]:
    """Options of ``name:value;name:value``, each of the type it has in the game.

    Raises:
        OptionError: a part is not ``name:value``, or its value is not of the option's type.
    """
    box = load_rules(game).variants["box"]
    options: dict[str, Any] = {}
    for part in filter(None, text.split(";")):
        name, colon, value = part.partition(":")
        if not colon:
            raise OptionError(f"options are given as name:value;name:value, not {text!r}")
        kind: Any = type(getattr(box, name, ""))
        try:
            options[name] = _BOOLS[value] if kind is bool else kind(value)
        except (KeyError, ValueError):
            raise OptionError(f"option {name!r} must be of type {kind.__name__}, not {value!r}") from None
    return options


def _written_options(options: dict[str, Any]) -> str:
    return ";".join(f"{name}:{value}" for name, value in options.items())


def _game_info(ruleset: Ruleset) -> Any:
    stakes = getattr(ruleset.options, "reward", "result") == "stakes"
    most = ruleset.rules.feature_scales(ruleset.options)["balance"] if stakes else 1.0
    return pyspiel.GameInfo(
        num_distinct_actions=ruleset.num_actions,
        max_chance_outcomes=max((len(kind.values) for kind in ruleset.chance_kinds), default=0),
        num_players=ruleset.num_seats,
        min_utility=-most,
        max_utility=most,
        utility_sum=0.0,
        max_game_length=MOST_MOVES,
    )


class SpielState(pyspiel.State):  # type: ignore[misc]
    """A position as OpenSpiel's algorithms walk it; ``str(state)`` is the position's text.

    Args:
        game: its game.
        position: with explicit chance; the state's own from now on.
    """

    def __init__(self, game: SpielGame, position: Position) -> None:
        super().__init__(game)
        self.position = position
        self._decisions = 0

    def current_player(self) -> int:
        """The seat that decides, or CHANCE, or TERMINAL."""
        if self.is_terminal():
            return int(pyspiel.PlayerId.TERMINAL)
        return int(pyspiel.PlayerId.CHANCE if self.position.chance_due else self.position.seat)

    def is_terminal(self) -> bool:
        """Whether the game is over or was stopped."""
        return self.position.is_over or self._decisions >= MOST_MOVES

    def returns(self) -> list[float]:
        """What each seat is paid; zeros while the game runs."""
        rewards = self.position.rewards
        return [rewards[seat % 2] for seat in range(self.position.ruleset.num_seats)]

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """(index, probability) of each outcome of the throw that is due."""
        return [(index, odds) for index, (_, odds) in enumerate(self.position.chance_outcomes())]

    def _legal_actions(self, player: int) -> list[int]:
        return self.position.legal_actions()

    def _apply_action(self, action: int) -> None:
        position = self.position
        if position.chance_due:
            position.apply_chance(position.chance_outcomes()[action][0])
            position.clear_stack()
            return
        position.advance(action)
        self._decisions += 1

    def _action_to_string(self, player: int, action: int) -> str:
        if self.position.chance_due:
            return f"throw {self.position.chance_outcomes()[action][0]}"
        return self.position.notation_of_legal(action)

    def __str__(self) -> str:
        return self.position.text()


class PlanesObserver:
    """``tensor`` (C * H * W,) float32 and ``dict["observation"]`` (C, H, W), a view of it, as OpenSpiel asks for them.

    Raises:
        ValueError: parameters were given; there are none.
    """

    def __init__(self, ruleset: Ruleset, params: Any) -> None:
        if params:
            raise ValueError(f"the observer has no parameters, and was given {params}")
        self._encoder = Encoder(ruleset)
        self.tensor = np.zeros(int(np.prod(self._encoder.shape)), np.float32)
        self.dict = {"observation": self.tensor.reshape(self._encoder.shape)}

    def set_from(self, state: SpielState, player: int) -> None:
        """Write what ``player`` sees."""
        self.dict["observation"][:] = self._encoder.observe(state.position, player)

    def string_from(self, state: SpielState, player: int) -> str:
        """The text of the position, the same for all players."""
        return str(state)


class AgentBot(pyspiel.Bot):  # type: ignore[misc]
    """One of our agents as a bot.

    Args:
        agent: as ``load_agent`` takes it.
        player: the seat it plays.
    """

    def __init__(self, agent: Any, player: int) -> None:
        super().__init__()
        self._agent = load_agent(agent)
        self._player = player

    def player_id(self) -> int:
        """The seat it plays."""
        return self._player

    def restart_at(self, state: SpielState) -> None:
        """Nothing is kept between moves."""

    def step(self, state: SpielState) -> int:
        """Its action in a state in which it is to move."""
        position = state.position
        # What an agent plays on must throw by itself, and never with the throws of the game.
        view = Position.from_rows(position.ruleset, *position.rows)
        return position.parse(self._agent.act(view))


class BotAgent(BaseAgent):
    """A bot of OpenSpiel as an agent.

    Args:
        make_bot: is given the ``SpielGame`` that is played and a seed, and returns a bot; called when a game is first
            met and after ``seed``.
        name: for tables.
    """

    def __init__(self, make_bot: Any, name: str) -> None:
        super().__init__()
        self.name = name
        self._make_bot = make_bot
        self._bots: dict[Ruleset, tuple[SpielGame, Any]] = {}

    def seed(self, seed: int) -> None:
        """Make all bots anew."""
        super().seed(seed)
        self._bots = {}

    def act(self, position: Position) -> str:
        """The bot's move, in notation.

        Raises:
            IllegalMoveError: no seat decides.
            TypeError: the bot is OpenSpiel's MCTS of C++, which ends the process on games written in Python.
        """
        deciding_moves(position)
        game, bot = self._bot(position.ruleset)
        state = game.state_of(position)
        bot.restart_at(state)
        return position.notation(int(bot.step(state)))

    def policy(self, position: Position) -> dict[str, float]:
        """1 for the move the bot plays when asked once, 0 for the others; raises as ``act``."""
        chosen = self.act(position)
        return {move: float(move == chosen) for move in position.legal_moves()}

    def _bot(self, ruleset: Ruleset) -> tuple[SpielGame, Any]:
        if ruleset not in self._bots:
            game = spiel_game(ruleset)
            bot = self._make_bot(game, int(self._rng.integers(2**31)))
            refuse_crashing(bot)
            self._bots[ruleset] = game, bot
        return self._bots[ruleset]


def refuse_crashing(bot: Any) -> None:
    """Refuse OpenSpiel's MCTS of C++: it ends the process (segmentation fault, 2.0.2) on any game written in Python.

    Raises:
        TypeError: the bot is one.
    """
    if isinstance(bot, pyspiel.MCTSBot):
        raise TypeError(
            "pyspiel.MCTSBot crashes on games written in Python; use open_spiel.python.algorithms.mcts.MCTSBot"
        )


def spiel_game(ruleset: Ruleset) -> SpielGame:
    """The OpenSpiel game of a ruleset."""
    return _CLASSES[ruleset.game]({"variant": ruleset.variant, "options": _written_options(ruleset.overrides)})


def load(text: str) -> BotAgent:
    """The agent ``openspiel:TEXT``: ``mcts:SIMULATIONS`` is OpenSpiel's MCTS of Python with one random rollout a leaf.

    Raises:
        ValueError: the text is something else.
    """
    kind, _, count = text.partition(":")
    if kind != "mcts" or not count.isascii() or not count.isdigit() or not 0 < int(count[:9]) < 10**8:
        raise ValueError(f"an agent of OpenSpiel is 'openspiel:mcts:SIMULATIONS', not {'openspiel:' + text!r}")
    simulations = int(count)

    def make_bot(game: SpielGame, seed: int) -> Any:
        random = np.random.RandomState(seed)
        evaluator = mcts.RandomRolloutEvaluator(1, random)
        return mcts.MCTSBot(game, 2.0, simulations, evaluator, solve=False, random_state=random)

    return BotAgent(make_bot, f"openspiel:{text}")


def _register(game: str) -> type[SpielGame]:
    rules = load_rules(game)
    cls = type(f"{rules.title.replace(' ', '')}Game", (SpielGame,), {"name": game, "__doc__": SpielGame.__doc__})
    pyspiel.register_game(_game_type(game, any(map(rules.chance, rules.variants.values()))), cls)
    return cls


_CLASSES = {game: _register(game) for game in games()}
