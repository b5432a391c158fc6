"""What ``tradgames bench`` measures of this package, and the baselines that run beside it."""

import importlib
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tradgames_env as tg
from tradgames_env.encoding import Encoder
from tradgames_env.processors import cores
from tradgames_env.rules.ruleset import load_ruleset
from training.bench import Figure, Task, clocked
from training.yardstick import Yardstick


class Topic(NamedTuple):
    """What the figures of one kind mean.

    Attributes:
        title: one line.
        unit: of the figures.
    """

    title: str
    unit: str


BATCH = 2048
"""Games in a batch."""

_STEP = f"step of a batch of {BATCH:,} games with observation, mask and restart, actions drawn from the masks"

TOPICS: dict[str, Topic] = {
    "playouts": Topic("random playouts inside the compiled loop, one core", "moves/s"),
    "batch": Topic(f"{_STEP}, one core", "moves/s"),
    "batch, 2 cores": Topic(f"{_STEP}, 2 cores", "moves/s"),
    "batch, all cores": Topic(f"{_STEP}, all cores", "moves/s"),
    "raw_env": Topic("PettingZoo's interface, raw_env: last and step, action drawn from the mask", "moves/s"),
    "env": Topic("PettingZoo's interface, env with its wrappers: last and step, action drawn from the mask", "moves/s"),
    "position": Topic("one position, moves in notation: push and legal_moves", "moves/s"),
    "position, ids": Topic("one position, action ids: push_legal and legal_actions", "moves/s"),
    "position, observed": Topic("one position, action ids and observations: the same with Encoder.observe", "moves/s"),
    "bytes": Topic("state and history of one game in the batch", "bytes"),
    "peers": Topic("other libraries by their usual fast path", "moves/s"),
}
"""Topics of the figures, in the order of the table."""

CONNECT_FOUR = "PettingZoo connect_four_v3"
CHESS = "python-chess"

_PLAYOUT_MOVES = 100
# Random chess goes on long after the game is drawn; python-chess looks for that only when asked.
_LONGEST_CHESS = 300


def own_tasks(games: Sequence[str], yardsticks: Sequence[Yardstick]) -> list[Task]:
    """Everything that is measured of these games, each baseline that is installed before what is compared with it.

    Args:
        games: names.
        yardsticks: C programs, for the games that have one.
    """
    programs = {program.game: program for program in yardsticks}
    tasks = []
    for game in games:
        baseline = None
        if game in programs:
            baseline = Task("playouts", f"{game}.c, plain C", programs[game].play)
            tasks.append(baseline)
        tasks.append(Task("playouts", game, clocked(playouts(game)), None if baseline is None else baseline.name))
    for topic, threads in (("batch", 1), *_more_threads()):
        for game in games:
            alone = None if threads == 1 else f"batch: {game}"
            tasks.append(Task(topic, game, clocked(batch_steps(game, num_threads=threads)), alone))
    return [*tasks, *_env_tasks(games), *_position_tasks(games)]


def _more_threads() -> list[tuple[str, int]]:
    available = cores()
    topics = [("batch, 2 cores", 2)] if available >= 2 else []
    return [*topics, ("batch, all cores", available)] if available > 2 else topics


def sizes(games: Sequence[str]) -> list[Figure]:
    """Bytes of the state and history of one game in the batch."""
    figures = []
    for game in games:
        batch = tg.BatchGames(game, num_games=1, seed=0)
        size = float(batch.states.nbytes + batch.histories.nbytes)
        figures.append(Figure("bytes", game, size, size, size))
    return figures


def playouts(game: str, num_games: int = BATCH, **options: Any) -> Callable[[int], int]:
    """Random moves inside the compiled loop, without observations, on one core."""
    games = tg.BatchGames(game, num_games=num_games, seed=0, num_threads=1, **options)

    def run(amount: int) -> int:
        moves = max(_PLAYOUT_MOVES, -(-amount // num_games))
        games.play_random(moves)
        return moves * num_games

    return run


def batch_steps(game: str, num_games: int = BATCH, *, num_threads: int = 1, **options: Any) -> Callable[[int], int]:
    """Random legal actions through ``BatchGames.step``."""
    games = tg.BatchGames(game, num_games=num_games, seed=0, num_threads=num_threads, **options)
    # Starting positions alone would be no fair sample of a game.
    games.play_random(min(200, max(10, 4_000_000 // num_games)))

    def run(amount: int) -> int:
        steps = max(1, -(-amount // num_games))
        for _ in range(steps):
            games.step(games.sample_legal_actions())
        return steps * num_games

    return run


def _env_tasks(games: Sequence[str]) -> list[Task]:
    module = _module("pettingzoo.classic.connect_four.connect_four")
    tasks = []
    for topic in ("raw_env", "env"):
        baseline = None
        if module is not None:
            baseline = Task(topic, CONNECT_FOUR, clocked(env_steps(getattr(module, topic)())))
            tasks.append(baseline)
        for game in games:
            env = getattr(tg, topic)(game)
            tasks.append(Task(topic, game, clocked(env_steps(env)), None if baseline is None else baseline.name))
    return tasks


def env_steps(env: Any) -> Callable[[int], int]:
    """Random legal moves in any AEC environment, looking at the observation of who is next before each."""
    draw = random.Random(0).random
    env.reset(seed=0)

    def run(amount: int) -> int:
        for _ in range(amount):
            observation, _, terminated, truncated, _ = env.last()
            if terminated or truncated:
                env.reset()
                observation = env.last()[0]
            legal = observation["action_mask"].nonzero()[0]
            env.step(int(legal[int(draw() * len(legal))]))
        return amount

    return run


def _position_tasks(games: Sequence[str]) -> list[Task]:
    chess = _module("chess")
    baseline = None if chess is None else Task("position", CHESS, clocked(_chess_pushes(chess.Board)))
    tasks = [] if baseline is None else [baseline]
    for topic, run in (("position", _pushes), ("position, ids", _id_pushes), ("position, observed", _observed_pushes)):
        compared = None if baseline is None or topic == "position, observed" else baseline.name
        tasks += [Task(topic, game, clocked(run(game)), compared) for game in games]
    return tasks


def _pushes(game: str) -> Callable[[int], int]:
    draw = random.Random(0).random
    position = tg.Position(game, seed=0)

    def run(amount: int) -> int:
        for _ in range(amount):
            moves = position.legal_moves()
            if not moves:
                position.restart()
                moves = position.legal_moves()
            position.push(moves[int(draw() * len(moves))])
        return amount

    return run


def _observed_pushes(game: str) -> Callable[[int], int]:
    encoder = Encoder(load_ruleset(game))
    return _id_pushes(game, encoder.observe)


def _id_pushes(game: str, look: Callable[[tg.Position], Any] | None = None) -> Callable[[int], int]:
    draw = random.Random(0).random
    position = tg.Position(game, seed=0)

    def run(amount: int) -> int:
        for _ in range(amount):
            actions = position.legal_actions()
            if not actions:
                position.restart()
                actions = position.legal_actions()
            if look is not None:
                look(position)
            position.push_legal(actions[int(draw() * len(actions))])
        return amount

    return run


def _chess_pushes(new_board: Callable[[], Any]) -> Callable[[int], int]:
    draw = random.Random(0).random
    board = new_board()

    def run(amount: int) -> int:
        for _ in range(amount):
            moves = list(board.legal_moves)
            if not moves or len(board.move_stack) >= _LONGEST_CHESS:
                board.reset()
                moves = list(board.legal_moves)
            board.push(moves[int(draw() * len(moves))])
        return amount

    return run


def missing_baselines() -> list[str]:
    """What to install for the comparisons that cannot be made."""
    wanted = {"pettingzoo.classic.connect_four.connect_four": "pettingzoo[classic]", "chess": "chess"}
    return [package for module, package in wanted.items() if _module(module) is None]


def _module(name: str) -> Any:
    """A module, or None where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
