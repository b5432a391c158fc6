"""A game as a single-agent Gymnasium environment: the learner against an opponent."""

from collections.abc import Sequence
from typing import Any, Literal

import gymnasium
import numpy as np
from numpy.typing import NDArray

from tradgames_env.agents import Agent, load_agent
from tradgames_env.encoding import Encoder
from tradgames_env.envs.aec import image_space, observation_space, reset_position
from tradgames_env.envs.screen import RENDER_MODES, Screen
from tradgames_env.position import Position
from tradgames_env.rules.errors import IllegalMoveError
from tradgames_env.rules.ruleset import Ruleset, load_ruleset

Side = int | Literal["random"]
_SIDES = (0, 1, "random")


class SingleAgentEnv(gymnasium.Env[Any, np.int64]):
    """The learner plays one side, an opponent the other; a step is one decision of the learner.

    Within ``reset`` and ``step`` the opponent moves as often as it is its turn. Observation and action mask are the
    learner's, as in ``envs.aec``; ``info`` always holds ``action_mask`` (int8 (A,)), ``seat`` (0 natural, 1 black),
    ``winner``, ``reason``, ``moves`` (all moves since the learner's last decision, its own included, in notation) and
    ``illegal``. When the game is over the mask has a single one, at action 0, so that a masked policy that is asked
    once more does not fail. Rewards: +1, -1 or 0 at the end (the stakes where the option says so). An illegal action
    loses the game at once: reward -1, ``info["illegal"]`` True.

    Args:
        game: name of the game.
        variant: name of the variant.
        opponent: agent name with budget ("random", "greedy", "mcts:200"), checkpoint folder, agent object, or a
            callable from a position to a move.
        seat: side of the learner, 0 natural, 1 black, or "random" for a new choice each episode.
        flatten: observations as a flat float32 array instead of a dict with the mask.
        render_mode: "human", "ansi", "rgb_array" or None.
        pad_to: (H, W) of the observation, see ``Encoder``.
        **options: single rule options that replace the variant's.

    Raises:
        ValueError: no such game, opponent, side or render mode; team games, whose partners would share one learner.
        OptionError: no such variant or option, or a value the game refuses.
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 2}  # noqa: RUF012 - Gymnasium's name

    def __init__(
        self,
        game: str,
        variant: str = "box",
        *,
        opponent: Any = "random",
        seat: Side = "random",
        flatten: bool = False,
        render_mode: str | None = None,
        pad_to: tuple[int, int] | None = None,
        **options: Any,
    ) -> None:
        self._position = Position.from_ruleset(two_sided_ruleset(game, variant, options))
        self.render_mode = render_mode
        self.opponent = load_agent(opponent)
        self._pool: tuple[Agent, ...] = ()
        self._seat_choice = check_seat(seat)
        self.seat = 0
        self._flatten = flatten
        self._encoder = Encoder(self._position.ruleset, pad_to)
        self._screen = Screen(render_mode)
        self._moves: list[str] = []
        self._illegal = False
        self.observation_space = learner_space(self._encoder, flatten)
        self.action_space = gymnasium.spaces.Discrete(self._position.ruleset.num_actions)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start a game; the opponent moves first if it is its turn.

        Args:
            seed: of everything random in the environment, the opponent included.
            options: ``{"seat": 0 | 1 | "random"}`` for this episode, ``{"position": text}`` to start from;
                other keys are ignored.

        Raises:
            ValueError: an unknown side, or a position that cannot be, or that is over.
        """
        text = reset_position(options)
        seat = check_seat((options or {}).get("seat", self._seat_choice))
        if text is not None:  # refused before anything changes
            Position.from_ruleset(self._position.ruleset, text)
        super().reset(seed=seed)
        self.seat = int(self.np_random.integers(2)) if seat == "random" else int(seat)
        if self._pool:
            self.opponent = self._pool[int(self.np_random.integers(len(self._pool)))]
        self._position.restart(text, seed=self._fresh_seed())
        self.opponent.seed(self._fresh_seed())
        self._screen.forget_move()
        self._moves, self._illegal = [], False
        self._let_opponent_move()
        if text is not None and self._position.is_over:
            raise ValueError(f"the game is over before the learner's first move from {text!r}")
        return self._observation(), self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play the learner's action and the opponent's answers.

        Args:
            action: id in the learner's frame.

        Returns:
            Observation, reward, terminated, truncated, info.
        """
        self._moves = []
        try:
            chosen = self._position.parse(action)
        except IllegalMoveError:
            if self._position.is_over or self._illegal:
                raise
            self._illegal = True
            return self._observation(), -1.0, True, False, self._info()
        self._play(chosen)
        self._let_opponent_move()
        position = self._position
        truncated = position.is_truncated
        reward = position.rewards[self.seat]
        if self.render_mode == "human":
            self.render()
        return self._observation(), reward, position.is_over and not truncated, truncated, self._info()

    def action_masks(self) -> NDArray[np.bool_]:
        """(A,) bool: the learner's legal actions, as sb3-contrib asks for them."""
        return self._mask().astype(np.bool_)

    def render(self) -> Any:
        """The board as text, as a (H, W, 3) uint8 array, or drawn in a window."""
        return self._screen.show(self._position)

    def close(self) -> None:
        """Close the window, if one is open."""
        self._screen.close()

    def set_opponents(self, opponents: Sequence[Any]) -> None:
        """Let every game that starts from now on draw its opponent from these; a game in progress keeps its own.

        Args:
            opponents: at least one, each as ``opponent`` of the constructor.

        Raises:
            ValueError: there is none, or there is no such opponent.
        """
        self._pool = load_opponents(opponents)

    @property
    def ruleset(self) -> Ruleset:
        """The game and its options."""
        return self._position.ruleset

    @property
    def position(self) -> Position:
        """A copy of the position, with a generator of its own."""
        return self._position.copy(seed=np.random.SeedSequence())

    def _let_opponent_move(self) -> None:
        while not self._position.is_over and self._position.to_move != self.seat:
            view = self._position.copy(seed=self._fresh_seed())
            self._play(self._position.parse(self.opponent.act(view)))

    def _play(self, action: int) -> None:
        self._moves.append(self._position.notation_of_legal(action))
        self._screen.before_move(self._position)
        self._position.advance(action)

    def _mask(self) -> NDArray[np.int8]:
        if self._illegal or self._position.is_over:
            mask = np.zeros(self._position.ruleset.num_actions, np.int8)
            mask[0] = 1
            return mask
        return self._position.action_mask()

    def _observation(self) -> Any:
        image = self._encoder.observe(self._position, self.seat)
        return image.ravel() if self._flatten else {"observation": image, "action_mask": self._mask()}

    def _info(self) -> dict[str, Any]:
        return {
            "action_mask": self._mask(),
            "seat": self.seat,
            "winner": 1 - self.seat if self._illegal else self._position.winner,
            "reason": "illegal" if self._illegal else self._position.reason,
            "moves": list(self._moves),
            "illegal": self._illegal,
        }

    def _fresh_seed(self) -> int:
        return int(self.np_random.integers(2**62))


def load_opponents(opponents: Sequence[Any]) -> tuple[Agent, ...]:
    """The agents that are meant; ValueError if there is none, or no such agent."""
    if isinstance(opponents, str) or not len(opponents):
        raise ValueError(f"opponents must be a sequence of at least one, not {opponents!r}")
    return tuple(load_agent(opponent) for opponent in opponents)


def two_sided_ruleset(game: str, variant: str, options: dict[str, Any]) -> Any:
    """The ruleset of a game for one learner and one opponent; team games are refused."""
    ruleset = load_ruleset(game, variant, **options)
    if ruleset.num_seats != 2:
        raise ValueError(f"{ruleset.label} has {ruleset.num_seats} seats; a single-agent view needs a game of 2")
    return ruleset


def check_seat(seat: Any) -> Side:
    """Refuse a side that is none."""
    if isinstance(seat, bool) or seat not in _SIDES:
        raise ValueError(f"seat must be 0 (natural), 1 (black) or 'random', not {seat!r}")
    side: Side = seat
    return side


def learner_space(encoder: Encoder, flatten: bool) -> gymnasium.Space[Any]:
    """The learner's observation space."""
    if flatten:
        image = image_space(encoder)
        return gymnasium.spaces.Box(image.low.ravel(), image.high.ravel(), dtype=np.float32)
    return observation_space(encoder, "obs")
