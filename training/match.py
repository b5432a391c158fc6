"""Two agents play many games against each other, in lockstep, so that a network sees whole batches.

Games come in pairs: both begin with the same random moves (the opening), with sides swapped, and in games with dice
both throw with generators of the same seed. Results are those of the rules: a win is a win, whatever the margin.
"""

import collections
import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from tradgames_env.agents import AgentSpec, load_agent
from tradgames_env.agents.base import Agent
from tradgames_env.position import Position
from tradgames_env.rules.errors import IllegalMoveError, NotationError
from tradgames_env.rules.ruleset import Ruleset
from training.intervals import Interval, score_interval, wilson

SIDES = ("natural", "black")

LOCKSTEP = 128
"""Games in progress at a time. More make larger batches, fewer lose less when a match is stopped."""

MAX_PLIES = 5000
"""A game this long is stopped and counts as a draw, whatever its options allow."""

MOST_DRAWS = 100
"""An opening is drawn this often, until the reference holds one for balanced; else the most balanced one counts."""

_MATCH_LIMIT = "match limit"


class AgentError(RuntimeError):
    """An agent did something that no agent may do, such as an illegal move."""


@dataclasses.dataclass(frozen=True)
class GameRecord:
    """One finished game, enough to play it again.

    Attributes:
        pair: number of its pair in the match.
        agent_side: colour of the match's first agent, 0 natural, 1 black.
        dice: seed of the position that makes its throws.
        actions: ids of all actions, those of the opening included.
        opening: how many of them are the opening.
        winner: colour, None for a draw or a stopped game.
        reason: why it ended.
        truncated: it was stopped (``max_turns`` or ``MAX_PLIES``).
        final: text of the last position.
    """

    pair: int
    agent_side: int
    dice: int
    actions: tuple[int, ...]
    opening: int
    winner: int | None
    reason: str
    truncated: bool
    final: str

    @property
    def points(self) -> float:
        """Of the match's first agent: 1, 0.5 or 0."""
        if self.winner is None:
            return 0.5
        return 1.0 if self.winner == self.agent_side else 0.0


@dataclasses.dataclass(frozen=True)
class MatchResult:
    """What ``agent`` scored against ``opponent``.

    Attributes:
        agent: name of the first agent.
        opponent: name of the other.
        ruleset: the game and its options.
        seed: of openings, throws and agents.
        records: finished games, both of each pair.
        stopped: the match was interrupted; games of unfinished pairs are left out.
        seconds_per_move: wall time of each agent, (agent, opponent); batched agents share it among the games.
    """

    agent: str
    opponent: str
    ruleset: Ruleset
    seed: int
    records: tuple[GameRecord, ...]
    stopped: bool
    seconds_per_move: tuple[float, float]

    @property
    def games(self) -> int:
        """Games played."""
        return len(self.records)

    @property
    def wins(self) -> int:
        """Games won by the agent."""
        return sum(record.points == 1.0 for record in self.records)

    @property
    def draws(self) -> int:
        """Games drawn or stopped."""
        return sum(record.points == 0.5 for record in self.records)

    @property
    def losses(self) -> int:
        """Games lost by the agent."""
        return sum(record.points == 0.0 for record in self.records)

    @property
    def truncated(self) -> int:
        """Games that were stopped; they count as draws."""
        return sum(record.truncated for record in self.records)

    @property
    def score(self) -> float:
        """Points a game: win 1, draw 0.5; NaN if nothing was played."""
        return float(np.mean([record.points for record in self.records])) if self.records else float("nan")

    @property
    def pair_scores(self) -> tuple[float, ...]:
        """Points of each pair of games, 0 to 2."""
        points: dict[int, float] = collections.defaultdict(float)
        for record in self.records:
            points[record.pair] += record.points
        return tuple(points.values())

    @property
    def score_interval(self) -> Interval:
        """95 % interval of ``score``, from the pairs."""
        return score_interval(self.pair_scores, self.seed)

    @property
    def win_interval(self) -> Interval:
        """Wilson's 95 % interval of the share of wins."""
        return wilson(self.wins, self.games)

    @property
    def repeated(self) -> float:
        """Share of games that repeat an earlier one move for move: near 0 in a match that says something."""
        different = {(record.actions, record.final) for record in self.records}
        return 1.0 - len(different) / len(self.records) if self.records else 0.0

    @property
    def mean_length(self) -> float:
        """Decisions a game, the opening included."""
        return float(np.mean([len(record.actions) for record in self.records])) if self.records else float("nan")

    @property
    def by_side(self) -> dict[str, tuple[int, int, int]]:
        """Wins, draws, losses of the agent as natural and as black."""
        return {name: _tally(r for r in self.records if r.agent_side == side) for side, name in enumerate(SIDES)}

    @property
    def by_reason(self) -> dict[str, tuple[int, int, int]]:
        """Wins, draws, losses of the agent by how the games ended, the most frequent first."""
        reasons = collections.Counter(record.reason for record in self.records)
        return {name: _tally(r for r in self.records if r.reason == name) for name, _ in reasons.most_common()}


def _tally(records: Iterator[GameRecord]) -> tuple[int, int, int]:
    points = [record.points for record in records]
    return (points.count(1.0), points.count(0.5), points.count(0.0))


@dataclasses.dataclass
class _Game:
    """A game in progress. Its position throws with a generator of its own, seeded by ``dice``."""

    ruleset: Ruleset
    pair: int
    agent_side: int
    dice: int

    def __post_init__(self) -> None:
        self.position = Position.from_ruleset(self.ruleset, seed=self.dice)
        self.actions: list[int] = []
        self.opening = 0

    @property
    def is_over(self) -> bool:
        return self.position.is_over or len(self.actions) >= MAX_PLIES

    @property
    def agent_to_move(self) -> int:
        """0 when the match's first agent decides, 1 for its opponent."""
        return int(self.position.to_move != self.agent_side)

    def play(self, action: int) -> None:
        self.position.push_legal(action)
        self.position.clear_stack()
        self.actions.append(action)

    def copy_for_agent(self) -> Position:
        """The position with another generator, so that looking ahead foresees no throw of the game."""
        seed = (self.pair << 32) + (self.agent_side << 31) + len(self.actions)
        return Position.from_rows(self.ruleset, *self.position.rows, seed=seed)

    def read(self, move: str, name: str) -> int:
        """The action that agent ``name`` chose."""
        try:
            return self.position.parse(move)
        except (NotationError, IllegalMoveError) as error:
            raise AgentError(f"{name} played an illegal move: {error}") from error

    def record(self) -> GameRecord:
        position = self.position
        return GameRecord(
            pair=self.pair,
            agent_side=self.agent_side,
            dice=self.dice,
            actions=tuple(self.actions),
            opening=self.opening,
            winner=position.winner,
            reason=position.reason or _MATCH_LIMIT,
            truncated=position.is_truncated or not position.is_over,
            final=position.text(),
        )


def play_match(
    agent: AgentSpec,
    opponent: AgentSpec,
    ruleset: Ruleset,
    games: int = 200,
    seed: int = 0,
    opening_plies: int = 4,
    *,
    lockstep: int = LOCKSTEP,
    on_progress: Callable[[int, int], None] | None = None,
) -> MatchResult:
    """Let two agents play ``games`` games, an even number, in pairs with sides swapped.

    The same arguments give the same games, as far as the agents repeat themselves when seeded. An interrupt from the
    keyboard ends the match; what was finished by then is the result, with ``stopped`` set.

    Args:
        agent: anything ``load_agent`` takes.
        opponent: the same.
        ruleset: the game and its options.
        games: how many, even and at least 2.
        seed: of openings, throws and both agents.
        opening_plies: random moves at the start of each game; an opening that ends the game is drawn again, one move
            shorter.
        lockstep: games in progress at a time, at least 2.
        on_progress: called with (games finished, moves played) after each round.

    Raises:
        ValueError: a number is out of range, or an agent cannot be loaded or cannot play this game.
        AgentError: an agent played an illegal move.
    """
    if games < 2 or games % 2:
        raise ValueError(f"games must be an even number, 2 or more, for pairs with sides swapped, not {games}")
    if opening_plies < 0 or lockstep < 2:
        raise ValueError(f"opening_plies must be 0 or more and lockstep 2 or more, not {opening_plies} and {lockstep}")
    agents = (load_agent(agent), load_agent(opponent))
    seed_agents(agents, np.random.SeedSequence(seed))
    openings = Openings(ruleset, seed, (opening_plies, opening_plies))
    played = play_pairs(agents, openings, range(games // 2), lockstep=lockstep, on_progress=on_progress)
    return MatchResult(
        agent=agents[0].name,
        opponent=agents[1].name,
        ruleset=ruleset,
        seed=seed,
        records=played.records,
        stopped=played.stopped,
        seconds_per_move=played.seconds_per_move,
    )


@dataclasses.dataclass(frozen=True)
class Openings:
    """How the games of each pair begin; all who share this share the beginnings.

    Attributes:
        ruleset: the game and its options.
        seed: of the moves and the throws.
        plies: fewest and most random moves, between which each pair draws; an opening that ends the game is drawn
            again, one move shorter.
        reference: agent whose value says whether an opening is balanced, None to take any.
        limit: the largest value, for either side, of a balanced opening; see ``MOST_DRAWS``.
    """

    ruleset: Ruleset
    seed: int
    plies: tuple[int, int]
    reference: Agent | None = None
    limit: float = 1.0

    def of(self, pair: int) -> tuple[int, tuple[int, ...]]:
        """Seed of the throws and the actions of both games of pair number ``pair``."""
        child = np.random.SeedSequence(self.seed, spawn_key=(pair,))
        dice, choices = (int(word) for word in child.generate_state(2, np.uint64))
        rng = np.random.default_rng(choices)
        if self.reference is None:
            return dice, tuple(self._drawn(dice, rng).actions)
        return dice, self._balanced(self.reference, dice, rng)

    def _balanced(self, reference: Agent, dice: int, rng: np.random.Generator) -> tuple[int, ...]:
        best: tuple[int, ...] = ()
        least = np.inf
        for _ in range(MOST_DRAWS):
            game = self._drawn(dice, rng)
            value = abs(reference.value(game.copy_for_agent()))
            if value < least:
                best, least = tuple(game.actions), value
            if least < self.limit:
                break
        return best

    def _drawn(self, dice: int, rng: np.random.Generator) -> _Game:
        """A game after random actions that leave it running."""
        fewest, most = self.plies
        plies = fewest if fewest == most else int(rng.integers(fewest, most + 1))
        for length in range(plies, 0, -1):
            game = _Game(self.ruleset, 0, 0, dice)
            while len(game.actions) < length and not game.is_over:
                legal = game.position.legal_actions()
                game.play(legal[int(rng.integers(len(legal)))])
            if not game.is_over:
                return game
        return _Game(self.ruleset, 0, 0, dice)


@dataclasses.dataclass(frozen=True)
class Played:
    """What ``play_pairs`` did.

    Attributes:
        records: finished games, both of each pair, in the order of the pairs.
        moves: decisions of each agent.
        seconds: wall time each agent took for them.
        stopped: a keyboard interrupt ended it early.
    """

    records: tuple[GameRecord, ...]
    moves: tuple[int, int]
    seconds: tuple[float, float]
    stopped: bool

    @property
    def seconds_per_move(self) -> tuple[float, float]:
        """Of each agent."""
        own, other = (took / max(1, moves) for took, moves in zip(self.seconds, self.moves, strict=True))
        return (own, other)


def seed_agents(agents: tuple[Agent, Agent], sequence: np.random.SeedSequence) -> None:
    """Let both agents draw anew, each by a word of its own."""
    for agent, word in zip(agents, sequence.generate_state(2), strict=True):
        agent.seed(int(word))


def play_pairs(
    agents: tuple[Agent, Agent],
    openings: Openings,
    pairs: Iterable[int],
    *,
    lockstep: int = LOCKSTEP,
    on_progress: Callable[[int, int], None] | None = None,
) -> Played:
    """Let two agents, seeded by the caller, play the pairs of games of these numbers.

    Args:
        agents: who plays; ``GameRecord.agent_side`` is the side of the first.
        openings: how each pair begins.
        pairs: numbers of the pairs.
        lockstep: games in progress at a time, at least 2.
        on_progress: called with (games finished, moves played) after each round.

    Raises:
        AgentError: an agent played an illegal move.
    """
    match = _Match(agents, _paired_games(openings, pairs), lockstep)
    stopped = False
    try:
        while match.play_round():
            if on_progress is not None:
                on_progress(len(match.records), match.moves[0] + match.moves[1])
    except KeyboardInterrupt:
        stopped = True
    return Played(
        records=_whole_pairs(match.records),
        moves=(match.moves[0], match.moves[1]),
        seconds=(match.seconds[0], match.seconds[1]),
        stopped=stopped,
    )


class _Match:
    """The games in progress and what was finished."""

    def __init__(self, agents: tuple[Agent, Agent], waiting: Iterator[_Game], lockstep: int) -> None:
        self.agents = agents
        self.records: list[GameRecord] = []
        self.moves = [0, 0]
        self.seconds = [0.0, 0.0]
        self._waiting = waiting
        self._lockstep = lockstep
        self._active: list[_Game] = []

    def play_round(self) -> bool:
        """About one move in every game in progress; False when there is none left."""
        while len(self._active) < self._lockstep and (game := next(self._waiting, None)) is not None:
            self._active.append(game)
        if not self._active:
            return False
        for number in (0, 1):
            self._move(number, [game for game in self._active if game.agent_to_move == number and not game.is_over])
        self.records += [game.record() for game in self._active if game.is_over]
        self._active = [game for game in self._active if not game.is_over]
        return True

    def _move(self, number: int, games: Sequence[_Game]) -> None:
        if not games:
            return
        agent = self.agents[number]
        positions = [game.copy_for_agent() for game in games]
        start = time.perf_counter()
        moves = agent.act_many(positions)
        self.seconds[number] += time.perf_counter() - start
        self.moves[number] += len(games)
        if len(moves) != len(games):
            raise AgentError(f"{agent.name} gave {len(moves)} moves for {len(games)} positions")
        for game, move in zip(games, moves, strict=True):
            game.play(game.read(move, agent.name))


def _paired_games(openings: Openings, pairs: Iterable[int]) -> Iterator[_Game]:
    """Games at the end of their openings, two of a pair after each other."""
    for pair in pairs:
        dice, opening = openings.of(pair)
        for side in (0, 1):
            game = _Game(openings.ruleset, pair, side, dice)
            for action in opening:
                game.play(action)
            game.opening = len(opening)
            yield game


def _whole_pairs(records: Sequence[GameRecord]) -> tuple[GameRecord, ...]:
    """In the order of their pairs, without those whose partner was not finished."""
    count = collections.Counter(record.pair for record in records)
    whole = [record for record in records if count[record.pair] == 2]
    return tuple(sorted(whole, key=lambda record: (record.pair, record.agent_side)))


@dataclasses.dataclass(frozen=True)
class Frame:
    """A position of a replayed game and how it came about; ``move`` and ``mover`` are None at the start."""

    position: Position
    mover: int | None
    move: str | None
    in_opening: bool


def replay(ruleset: Ruleset, record: GameRecord) -> Iterator[Frame]:
    """The positions of a recorded game, from the start to the end, every throw as it fell."""
    position = Position.from_ruleset(ruleset, seed=record.dice)
    yield Frame(position.copy(), None, None, in_opening=True)
    for ply, action in enumerate(record.actions):
        mover, move = position.to_move, position.notation(action)
        position.push(action)
        position.clear_stack()
        yield Frame(position.copy(), mover, move, in_opening=ply < record.opening)
