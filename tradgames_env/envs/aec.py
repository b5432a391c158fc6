"""The one PettingZoo AEC environment for all games."""

import copy
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray
from pettingzoo import AECEnv
from pettingzoo.utils.conversions import turn_based_aec_to_parallel
from pettingzoo.utils.env import ParallelEnv

from tradgames_env.encoding import PLANE_INDEX, Encoder
from tradgames_env.envs.infos import Info, Played
from tradgames_env.envs.screen import RENDER_MODES, Screen
from tradgames_env.envs.wrapped import WrappedGame
from tradgames_env.position import Position
from tradgames_env.rules.errors import NotationError, require_count
from tradgames_env.rules.ruleset import Ruleset, load_ruleset

MaskIn = Literal["obs", "info", "both"]


class TraditionalGameEnv(AECEnv[str, Any, Any]):
    """A traditional game for two players (four in team games) who take turns.

    Agents are ``player_0`` (natural) and ``player_1`` (black); with partners, ``player_2`` (natural) and ``player_3``
    (black). ``agent_selection`` may name the same agent twice in a row. Throws are made inside ``reset`` and ``step``
    by the environment's own generator.

    Observation: ``{"observation": float32 (C, H, W) in [-1, 1], "action_mask": int8 (A,)}``, see ``encoding.PLANES``;
    the mask is all zero for an agent that is not to move. Actions are integers in the frame of the mover. Rewards are
    zero-sum and paid at the step that ends the game: +1, -1, or 0 for a draw; they are also due when the game is
    truncated, as 0. ``infos[agent]`` holds ``winner`` (0 natural, 1 black, None), ``reason`` (None while the game
    runs), ``move`` (the last one in notation, None at the start), and ``balance`` (the agent's running stakes) in games
    that are played for stakes. The info dicts write the move when they are read first, see ``infos.Info``.

    Copies and pickles keep the game in progress and go on identically.

    Args:
        game: name of the game.
        variant: name of the variant.
        render_mode: "human" (a window), "ansi" (text), "rgb_array" or None.
        mask_in: where the action mask goes: into the observation dict, the info dict (the observation is then the
            plain array), or both.
        max_cycles: steps after which the game is truncated; None for no limit but the rules' own.
        pad_to: (H, W) of the observation, see ``Encoder``.
        **options: single rule options that replace the variant's.

    Raises:
        ValueError: no such game, render mode or mask place; ``max_cycles`` below 1.
        OptionError: no such variant or option, or a value the game refuses.
    """

    def __init__(
        self,
        game: str,
        variant: str = "box",
        *,
        render_mode: str | None = None,
        mask_in: MaskIn = "obs",
        max_cycles: int | None = None,
        pad_to: tuple[int, int] | None = None,
        **options: Any,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        if mask_in not in ("obs", "info", "both"):
            raise ValueError(f"mask_in must be 'obs', 'info' or 'both', not {mask_in!r}")
        ruleset = load_ruleset(game, variant, **options)
        self.metadata = {
            "name": f"{game}_v0",
            "render_modes": list(RENDER_MODES),
            "render_fps": 2,
            "is_parallelizable": False,
        }
        self.render_mode = render_mode
        self.max_cycles = None if max_cycles is None else require_count("max_cycles", max_cycles, 1)
        self._mask_in = mask_in
        self._encoder = Encoder(ruleset, pad_to)
        self._position = Position.from_ruleset(ruleset)
        self._informs_in_private = mask_in != "obs" or self._position.balance is not None
        self._screen = Screen(render_mode)
        self.possible_agents = [f"player_{seat}" for seat in range(ruleset.num_seats)]
        self._seats = {agent: seat for seat, agent in enumerate(self.possible_agents)}
        space = observation_space(self._encoder, mask_in)
        actions = gymnasium.spaces.Discrete(ruleset.num_actions)
        self.observation_spaces = dict.fromkeys(self.possible_agents, space)
        self.action_spaces = {agent: copy.deepcopy(actions) for agent in self.possible_agents}
        self.state_space = image_space(self._encoder)

    # -- PettingZoo ------------------------------------------------------------------------------------------------

    def observation_space(self, agent: str) -> gymnasium.Space[Any]:
        """The same object on each call."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gymnasium.Space[Any]:
        """The same object on each call."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start a game; without a seed the generator goes on where it is.

        Args:
            seed: of the environment's generator.
            options: ``{"position": text}`` starts from that position; other keys are ignored.

        Raises:
            ValueError: a position that cannot be.
        """
        self._start(reset_position(options), seed)

    def set_position(self, text: str) -> None:
        """Start a game from a position text; the generator goes on where it is.

        Raises:
            NotationError: the text cannot be read or the position cannot be; nothing has changed.
        """
        if not isinstance(text, str):
            raise NotationError(f"a position is given as a text, not as {text!r}")
        self._start(text, None)

    def _start(self, text: str | None, seed: int | None) -> None:
        self._position.restart(text, seed=seed)
        self._screen.forget_move()
        self.agents = list(self.possible_agents)
        self.num_moves = 0
        self._legal: bytes | None = None
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.agent_selection = self.possible_agents[self._position.seat]
        self._settle(None)

    def step(self, action: int | None) -> None:
        """Play one action of the selected agent; None for an agent whose game is over.

        Raises:
            ResetNeeded: no game was started yet.
            IllegalMoveError: the action is not legal; nothing has changed.
        """
        if not hasattr(self, "agents"):
            raise ResetNeeded("call reset() before step(): no game was started yet")
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        position = self._position
        chosen = self._legal_action(action, agent)
        played = (position.ruleset, position.rows[0].tobytes(), chosen)
        if self.render_mode is not None:
            self._screen.before_move(position)
        position.advance(chosen)
        self._legal = None
        self.num_moves += 1
        self.agent_selection = self.possible_agents[position.seat]
        self._settle(played)
        if self.render_mode == "human":
            self.render()

    def _legal_action(self, action: int | None, agent: str) -> int:
        if action is None:
            raise ValueError(f"{agent} is still playing and must act; None is for agents whose game is over")
        legal = self._legal
        if legal is None:
            legal = self._mask(agent).tobytes()
        # The usual case first and fast; whatever else an action may be is the position's to judge.
        if type(action) in (int, np.int64) and 0 <= action < len(legal) and legal[action]:
            return int(action)
        return self._position.parse(action)

    def _settle(self, played: Played | None) -> None:
        """Bring flags, rewards and infos up to the position and the move that led to it, None if none did."""
        position = self._position
        over = position.is_over
        stopped = self.max_cycles is not None and self.num_moves >= self.max_cycles and not over
        winner = reason = None
        if over or stopped:
            self._end(terminated=over and not position.is_truncated)
            winner, reason = position.winner, "max_cycles" if stopped else position.reason
        shared = {"winner": winner, "reason": reason, "move": None}
        self.infos = {}
        for agent in self.agents:
            values = shared | self._private_info(agent) if self._informs_in_private else shared
            self.infos[agent] = info = Info(values)
            info.played = played

    def _end(self, terminated: bool) -> None:
        """The game is over for everyone. Before it nobody is paid, so these are the only rewards there are."""
        for agent in self.agents:
            self.terminations[agent] = terminated
            self.truncations[agent] = not terminated
            self.rewards[agent] = self._position.rewards[self._seats[agent] % 2]
            self._cumulative_rewards[agent] = self.rewards[agent]

    def _private_info(self, agent: str) -> dict[str, Any]:
        info: dict[str, Any] = {}
        if self._mask_in != "obs":
            info["action_mask"] = self._mask(agent)
        balance = self._position.balance
        if balance is not None:
            info["balance"] = balance if self._seats[agent] % 2 == 0 else -balance
        return info

    def _mask(self, agent: str) -> NDArray[np.int8]:
        """(A,) int8, fresh. What the mover may do is kept for the step, as bytes, which are fast to make and to ask."""
        # Those whose game is over and who have left are in neither dict.
        if agent != self.agent_selection or self.terminations.get(agent, True) or self.truncations.get(agent, True):
            return np.zeros(self._position.ruleset.num_actions, np.int8)
        mask = self._position.action_mask()
        self._legal = mask.tobytes()
        return mask

    def observe(self, agent: str) -> Any:
        """What an agent sees now, as fresh arrays; any agent may be asked at any time.

        Raises:
            ResetNeeded: no game was started yet.
            ValueError: there is no such agent.
        """
        if not hasattr(self, "agents"):
            raise ResetNeeded("call reset() before observe(): no game was started yet")
        if agent not in self._seats:
            raise ValueError(f"there is no agent {agent!r}; agents: {', '.join(self.possible_agents)}")
        image = self._encoder.observe(self._position, self._seats[agent])
        if self._mask_in == "info":
            return image
        return {"observation": image, "action_mask": self._mask(agent)}

    def state(self) -> NDArray[np.float32]:
        """(C, H, W) float32: the position as natural's first seat sees it."""
        return self._encoder.observe(self._position, 0)

    def render(self) -> Any:
        """The board as the render mode asks: text, a (H, W, 3) uint8 array, or None after drawing the window."""
        return self._screen.show(self._position)

    def close(self) -> None:
        """Close the window, if one is open."""
        self._screen.close()

    # -- beyond PettingZoo -----------------------------------------------------------------------------------------

    @property
    def ruleset(self) -> Ruleset:
        """The game and its options."""
        return self._position.ruleset

    @property
    def position(self) -> Position:
        """A copy of the position, with a generator of its own: looking ahead on it foresees no throw."""
        return self._position.copy(seed=np.random.SeedSequence())

    def clone(self, *, seed: int | None = None) -> "TraditionalGameEnv":
        """A copy of the game in progress that goes on identically, or with throws of its own if given a seed."""
        other = copy.deepcopy(self)
        if seed is not None:
            other._position = other._position.copy(seed=seed)
        return other

    def __getstate__(self) -> dict[str, Any]:
        """Everything but what is loaded by name."""
        values = self.__dict__.copy()
        ruleset = self.ruleset
        values["_encoder"] = (ruleset.game, ruleset.variant, ruleset.overrides, self._encoder.shape[1:])
        return values

    def __setstate__(self, values: dict[str, Any]) -> None:
        """Restore what ``__getstate__`` gave."""
        self.__dict__.update(values)
        game, variant, overrides, shape = values["_encoder"]
        self._encoder = Encoder(load_ruleset(game, variant, **overrides), shape)


def raw_env(game: str, variant: str = "box", **kwargs: Any) -> TraditionalGameEnv:
    """The bare environment of a game; illegal actions raise. Arguments as ``TraditionalGameEnv``."""
    return TraditionalGameEnv(game, variant, **kwargs)


def env(game: str, variant: str = "box", **kwargs: Any) -> Any:
    """The environment of a game in PettingZoo's own wrappers: an illegal move ends the game with -1 for the mover."""
    return WrappedGame(raw_env(game, variant, **kwargs))


def parallel_env(game: str, variant: str = "box", **kwargs: Any) -> ParallelEnv:  # type: ignore[type-arg]
    """The game as a PettingZoo parallel environment in which every agent acts and only the mover's action counts."""
    return turn_based_aec_to_parallel(env(game, variant, **kwargs))


def image_space(encoder: Encoder) -> gymnasium.spaces.Box:
    """Box of the encoder's observations; only the balance of stakes is ever negative."""
    low = np.zeros(encoder.shape, np.float32)
    low[PLANE_INDEX["balance"]] = -1.0
    return gymnasium.spaces.Box(low, np.ones(encoder.shape, np.float32), dtype=np.float32)


def observation_space(encoder: Encoder, mask_in: MaskIn) -> gymnasium.Space[Any]:
    """The space of one agent's observations."""
    if mask_in == "info":
        return image_space(encoder)
    mask = gymnasium.spaces.Box(0, 1, (encoder.ruleset.num_actions,), np.int8)
    return gymnasium.spaces.Dict({"observation": image_space(encoder), "action_mask": mask})


def reset_position(options: dict[str, Any] | None) -> str | None:
    """The start position asked for in ``reset(options={"position": text})``.

    Other keys are none of our business: libraries and PettingZoo's own tests pass keys of theirs.
    """
    if not isinstance(options, dict | None):
        raise ValueError(f"reset options must be a dict or None, not {options!r}")
    text = (options or {}).get("position")
    if text is not None and not isinstance(text, str):
        raise ValueError(f"the reset option 'position' must be a position text, not {text!r}")
    return text
