"""Many games as one Gymnasium vector environment over ``BatchGames``: compiled, not a loop over environments."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from tradgames_env.agents import Agent, load_agent
from tradgames_env.agents.base import RowAgent
from tradgames_env.agents.random import RandomAgent
from tradgames_env.envs.batch_games import BatchGames
from tradgames_env.envs.single_agent import Side, check_seat, learner_space, load_opponents, two_sided_ruleset
from tradgames_env.rules.contract import BLACK_WINS, NATURAL_WINS, OUTCOME, RUNNING
from tradgames_env.rules.ruleset import Ruleset

SELF_PLAY = "self"


class VectorGameEnv(VectorEnv[Any, Any, Any]):
    """``num_envs`` games, each as ``envs.single_agent.SingleAgentEnv`` shows it.

    With ``opponent="self"`` the learner decides for both sides: each observation is that of the side to move, and each
    reward that of the side which just moved.

    ``infos``: ``action_mask`` int8 (N, A), ``seat`` (N,) the side the observation belongs to, ``winner`` (N,) 0, 1 or
    -1, ``rewards`` float32 (N, 2) of natural and black, ``illegal`` (N,) bool, each with its ``_key`` mask. An illegal
    action loses its game: reward -1, terminated. A game that is over has a mask with a single one, at action 0.

    Args:
        num_envs: N.
        game: name of the game.
        variant: name of the variant.
        opponent: as in ``SingleAgentEnv``, or "self".
        seat: as in ``SingleAgentEnv``; unused with ``opponent="self"``.
        flatten: observations as flat float32 arrays instead of dicts with the mask.
        autoreset_mode: any of Gymnasium's three.
        copy: return fresh observation arrays; False returns the live ones, rewritten by the next step.
        pad_to: (H, W) of the observations, see ``Encoder``.
        num_threads: all cores of the process when None.
        max_episode_steps: must be None; games are limited by their own rules.
        **options: single rule options that replace the variant's.

    Raises:
        ValueError: as ``SingleAgentEnv``; an unknown autoreset mode.
        OptionError: no such variant or option, or a value the game refuses.
    """

    def __init__(
        self,
        num_envs: int,
        game: str,
        variant: str = "box",
        *,
        opponent: Any = "random",
        seat: Side = "random",
        flatten: bool = False,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        pad_to: tuple[int, int] | None = None,
        num_threads: int | None = None,
        max_episode_steps: int | None = None,
        **options: Any,
    ) -> None:
        # Gymnasium before 1.4 closes what is collected, even if making it failed before there was anything to close.
        self.closed = True
        if max_episode_steps is not None:
            raise ValueError("max_episode_steps is not supported; use the rule option max_turns")
        two_sided_ruleset(game, variant, options)
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {"autoreset_mode": self.autoreset_mode, "render_modes": []}
        self.render_mode = None
        self.num_envs = num_envs
        self.games = BatchGames(
            game, variant, num_games=num_envs, restart_finished=False, pad_to=pad_to, num_threads=num_threads, **options
        )
        self.closed = False
        self._plays_itself = isinstance(opponent, str) and opponent == SELF_PLAY
        self._pool: tuple[Agent, ...] = () if self._plays_itself else (load_agent(opponent),)
        self._opponents = list(self._pool * num_envs)
        self._seat_choice = check_seat(seat)
        self._flatten = flatten
        self._copy = copy
        self._learners = np.zeros(num_envs, np.int8)
        self._illegal = np.zeros(num_envs, np.bool_)
        self.single_action_space = gymnasium.spaces.Discrete(self.games.ruleset.num_actions)
        self.single_observation_space = learner_space(self.games.encoder, flatten)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)

    @property
    def ruleset(self) -> Ruleset:
        """The game and its options."""
        return self.games.ruleset

    def set_opponents(self, opponents: Sequence[Any]) -> None:
        """Let every game that starts from now on draw its opponent from these; games in progress keep theirs.

        Args:
            opponents: at least one, each as ``opponent`` of the constructor.

        Raises:
            ValueError: there is none, there is no such opponent, or the learner plays both sides.
        """
        if self._plays_itself:
            raise ValueError("with opponent='self' the learner plays both sides, and there is no opponent to set")
        self._pool = load_opponents(opponents)
        self._seed_opponents()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start all games, or those of ``options["reset_mask"]`` (N,) bool.

        Args:
            seed: of everything random, the opponent included; only without ``reset_mask``.
            options: ``{"reset_mask": ndarray}``, ``{"seat": 0 | 1 | "random"}`` for the games that start; other
                keys are ignored.

        Raises:
            ValueError: an unknown side, a wrong mask, or a seed together with a mask.
        """
        super().reset(seed=seed)
        options = options or {}
        which = self._reset_mask(options.get("reset_mask"), seed)
        if which is None:
            self.games.reset(int(self.np_random.integers(2**62)))
            self._seed_opponents()
            which = np.ones(self.num_envs, np.bool_)
        self._start(which, check_seat(options.get("seat", self._seat_choice)))
        return self._observations(), self._infos(which)

    def step(
        self, actions: Any
    ) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Play one action of the learner in each game, and the opponent's answers.

        Args:
            actions: (N,) integers.

        Returns:
            Observations, rewards (N,) float64, terminations (N,) bool, truncations (N,) bool, infos.

        Raises:
            ValueError: wrong shape, or (autoreset mode DISABLED) a game is over and was not reset.
        """
        over = self._over()
        if over.any() and self.autoreset_mode == AutoresetMode.DISABLED:
            raise ValueError(f"games {np.flatnonzero(over)[:5].tolist()} are over: reset them with a reset_mask")
        chosen = np.asarray(actions)
        legal = self.games.is_legal(chosen)
        movers = self.games.to_move.copy()
        self._illegal = ~over & ~legal
        self.games.step_some(np.where(legal, chosen, 0), ~over & legal)
        if over.any():  # only in NEXT_STEP mode: what the policy said of a finished game is ignored
            self._start(over, self._seat_choice)
        self._let_opponent_move()
        sides = movers if self._plays_itself else self._learners
        rewards, terminated, truncated = self._results(sides, fresh=over)
        infos = self._infos(np.ones(self.num_envs, np.bool_))
        ended = terminated | truncated
        if self.autoreset_mode == AutoresetMode.SAME_STEP and ended.any():
            infos = self._restart_same_step(ended, infos)
        return self._observations(), rewards, terminated, truncated, infos

    def action_masks(self) -> NDArray[np.bool_]:
        """(N, A) bool: the legal actions of the side that decides."""
        return self._masks().astype(np.bool_)

    def close_extras(self, **kwargs: Any) -> None:
        """End the threads."""
        self.games.close()

    # -- helpers ---------------------------------------------------------------------------------------------------

    def _reset_mask(self, mask: Any, seed: int | None) -> NDArray[np.bool_] | None:
        if mask is None:
            return None
        which = np.asarray(mask)
        if which.shape != (self.num_envs,) or which.dtype != np.bool_ or not which.any():
            raise ValueError(f"reset_mask must be ({self.num_envs},) bool with at least one True")
        if seed is not None:
            raise ValueError("a seed starts all games anew; it cannot be given together with a reset_mask")
        return which

    def _start(self, which: NDArray[np.bool_], seat: Side) -> None:
        self.games.restart(which)
        self._illegal[which] = False
        sides = self.np_random.integers(2, size=self.num_envs) if seat == "random" else np.full(self.num_envs, seat)
        self._learners[which] = sides[which]
        self._draw_opponents(which)
        self._let_opponent_move()

    def _seed_opponents(self) -> None:
        for agent in self._pool:
            agent.seed(int(self.np_random.integers(2**62)))

    def _draw_opponents(self, which: NDArray[np.bool_]) -> None:
        if self._plays_itself:
            return
        started = np.flatnonzero(which)
        # One opponent needs no draw, and takes none from the generator.
        drawn = np.zeros(len(started), np.int64)
        if len(self._pool) > 1:
            drawn = self.np_random.integers(len(self._pool), size=len(started))
        for index, number in zip(started.tolist(), drawn.tolist(), strict=True):
            self._opponents[index] = self._pool[number]

    def _over(self) -> NDArray[np.bool_]:
        over: NDArray[np.bool_] = (self.games.states[:, OUTCOME] != RUNNING) | self._illegal
        return over

    def _let_opponent_move(self) -> None:
        if self._plays_itself:
            return
        while True:
            waiting = ~self._over() & (self.games.to_move != self._learners)
            if not waiting.any():
                return
            self.games.step_some(self._opponent_actions(np.flatnonzero(waiting)), waiting)

    def _opponent_actions(self, waiting: NDArray[np.int64]) -> NDArray[np.int64]:
        """(N,) int64: what their opponents play in the games ``waiting`` (n,); 0 in the others."""
        actions = np.zeros(self.num_envs, np.int64)
        groups: dict[int, tuple[Agent, list[int]]] = {}
        for index in waiting.tolist():
            agent = self._opponents[index]
            groups.setdefault(id(agent), (agent, []))[1].append(index)
        for agent, members in groups.values():
            indices = np.array(members)
            actions[indices] = self._answers(agent, indices)
        return actions

    def _answers(self, agent: Agent, indices: NDArray[np.int64]) -> Any:
        """(n,) integers: what one opponent plays in the games ``indices`` (n,)."""
        games = self.games
        if isinstance(agent, RandomAgent):
            return games.sample_legal_actions()[indices]
        if isinstance(agent, RowAgent):
            return agent.act_rows(games.observations[indices], games.action_masks[indices])
        seeds = self.np_random.integers(2**62, size=len(indices))
        positions = [games.position(int(i), seed=int(s)) for i, s in zip(indices, seeds, strict=True)]
        # Agents may push on the positions they are handed, so moves are read on copies of our own.
        moves = agent.act_many([position.copy() for position in positions])
        return [position.parse(move) for position, move in zip(positions, moves, strict=True)]

    def _results(
        self, sides: NDArray[np.int8], fresh: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
        """Rewards and flags of this step; games just started in it have none."""
        games = self.games
        over = (games.states[:, OUTCOME] != RUNNING) & ~fresh
        rewards = np.where(over, games.rewards[np.arange(self.num_envs), sides], 0.0).astype(np.float64)
        rewards[self._illegal] = -1.0
        return rewards, (over & games.terminated) | self._illegal, over & games.truncated

    def _masks(self) -> NDArray[np.int8]:
        masks = self.games.action_masks.copy()
        over = self._over()
        masks[over] = 0
        masks[over, 0] = 1
        return masks

    def _views(self) -> NDArray[np.float32]:
        images = self.games.observations
        foreign = self._over() & (self.games.to_move != self._learners)
        if not self._plays_itself and foreign.any():
            images = images.copy()
            games = self.games
            images[foreign] = games.encoder.encode(
                games.states[foreign], games.histories[foreign], self._learners[foreign]
            )
        elif self._copy:
            images = images.copy()
        return images

    def _observations(self) -> Any:
        images = self._views()
        if self._flatten:
            return images.reshape(self.num_envs, -1)
        return {"observation": images, "action_mask": self._masks()}

    def _infos(self, which: NDArray[np.bool_]) -> dict[str, Any]:
        outcomes = self.games.states[:, OUTCOME]
        winners = np.select([outcomes == NATURAL_WINS, outcomes == BLACK_WINS], [0, 1], -1)
        seats = (self.games.to_move if self._plays_itself else self._learners).copy()
        winners = np.where(self._illegal, 1 - seats, winners)
        over = (outcomes != RUNNING)[:, None]
        infos: dict[str, Any] = {
            "action_mask": self._masks(),
            "seat": seats,
            "winner": winners,
            "rewards": np.where(over, self.games.rewards, self._forfeits(seats)).astype(np.float32),
            "illegal": self._illegal.copy(),
        }
        return {**infos, **{f"_{key}": which.copy() for key in infos}}

    def _forfeits(self, seats: NDArray[np.int8]) -> NDArray[np.float32]:
        """(N, 2) float32: -1 for the side that lost by an illegal action and 1 for the other, else zeros."""
        sides = np.where(seats[:, None] == np.arange(2), np.float32(-1), np.float32(1))
        return np.where(self._illegal[:, None], sides, np.float32(0))

    def _restart_same_step(self, ended: NDArray[np.bool_], infos: dict[str, Any]) -> dict[str, Any]:
        final = self._observations()
        final_obs = {k: v.copy() for k, v in final.items()} if isinstance(final, dict) else final.copy()
        final_info = {key: value for key, value in infos.items() if not key.startswith("_")}
        self._start(ended, self._seat_choice)
        started = self._infos(np.ones(self.num_envs, np.bool_))
        flags = {f"_{key}": ended.copy() for key in final_info}
        return {
            **started,
            "final_obs": final_obs,
            "_final_obs": ended.copy(),
            "final_info": {**final_info, **flags},
            "_final_info": ended.copy(),
        }
