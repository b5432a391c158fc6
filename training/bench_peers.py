"""Other libraries that play board games fast, measured by their usual fast path with the games nearest to ours."""

import importlib
import os
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tradgames_env.processors import cores
from training.bench import Task, clocked
from training.bench_tasks import BATCH, env_steps

_ROLLOUTS = 20
_SAMPLED_GAMES = 100
_JITTED_STEPS = 50


class Peer(NamedTuple):
    """A library.

    Attributes:
        package: what pip installs.
        module: what must be there to import.
        tasks: makes what is measured of it.
    """

    package: str
    module: str
    tasks: Callable[[], list[Task]]


def peer_tasks() -> tuple[list[Task], list[str]]:
    """What is measured of the libraries that are installed, and the packages that are missing."""
    tasks: list[Task] = []
    missing = []
    for peer in PEERS:
        try:
            importlib.import_module(peer.module)
        except ImportError:
            missing.append(peer.package)
            continue
        tasks += peer.tasks()
    return tasks, missing


def _task(subject: str, run: Callable[[int], int], topic: str, nearest: str) -> Task:
    """A task compared with our ``nearest`` game in the same kind of work."""
    return Task("peers", subject, clocked(run), f"{topic}: {nearest}")


def _batch_topic() -> str:
    """The topic of ours that uses as many cores as the batched libraries: all."""
    available = cores()
    return {1: "batch", 2: "batch, 2 cores"}.get(available, "batch, all cores")


# -- PettingZoo ----------------------------------------------------------------------------------------------------


def _pettingzoo() -> list[Task]:
    module = importlib.import_module("pettingzoo.classic.chess.chess")
    return [_task("PettingZoo chess_v6: env()", env_steps(module.env()), "env", "petteia")]


# -- OpenSpiel -----------------------------------------------------------------------------------------------------

_SPIEL_GAMES = {
    "breakthrough": "petteia",
    "lines_of_action": "petteia",
    "checkers": "yote",
    "oware": "puluc",
    "pig": "puluc",
    "backgammon": "yut_nori",
}


def _open_spiel() -> list[Task]:
    tasks = []
    for name, nearest in _SPIEL_GAMES.items():
        tasks.append(_task(f"OpenSpiel {name}: rollouts in C++, one core", _rollouts(name), "playouts", nearest))
    for name, nearest in _SPIEL_GAMES.items():
        subject = f"OpenSpiel {name}: from Python with observation"
        tasks.append(_task(subject, _spiel_steps(name), "position, observed", nearest))
    return tasks


def _rollouts(name: str) -> Callable[[int], int]:
    """Random games inside OpenSpiel: a tree search of one simulation evaluates its root by rollouts and does no more.

    The library does not say how long they were; the mean length of games played here stands for it.
    """
    pyspiel = importlib.import_module("pyspiel")
    game = pyspiel.load_game(name)
    start = _decision(game.new_initial_state(), random.Random(0))
    length = _mean_length(start)
    evaluator = pyspiel.RandomRolloutEvaluator(_ROLLOUTS, 1)
    bot = pyspiel.MCTSBot(game, evaluator, 1.0, 1, 10, False, 1, False)

    def run(amount: int) -> int:
        searches = -(-amount // round(_ROLLOUTS * length))
        for _ in range(searches):
            bot.mcts_search(start)
        return round(searches * _ROLLOUTS * length)

    return run


def _decision(state: Any, draw: random.Random) -> Any:
    """Draw what is left to chance, up to the next decision or the end."""
    while state.is_chance_node():
        outcomes, odds = zip(*state.chance_outcomes(), strict=True)
        state.apply_action(draw.choices(outcomes, odds)[0])
    return state


def _mean_length(start: Any) -> float:
    draw, moves = random.Random(1), 0
    for _ in range(_SAMPLED_GAMES):
        state = start.clone()
        while not state.is_terminal():
            state.apply_action(draw.choice(state.legal_actions()))
            _decision(state, draw)
            moves += 1
    return moves / _SAMPLED_GAMES


def _spiel_steps(name: str) -> Callable[[int], int]:
    game = importlib.import_module("pyspiel").load_game(name)
    draw = random.Random(0)
    state = _decision(game.new_initial_state(), draw)

    def run(amount: int) -> int:
        nonlocal state
        for _ in range(amount):
            state.observation_tensor()
            state.apply_action(draw.choice(state.legal_actions()))
            _decision(state, draw)
            if state.is_terminal():
                state = _decision(game.new_initial_state(), draw)
        return amount

    return run


# -- Pgx -----------------------------------------------------------------------------------------------------------

_PGX_GAMES = {"connect_four": "petteia", "othello": "petteia", "backgammon": "yut_nori"}


def _pgx() -> list[Task]:
    # Without this, JAX looks for accelerators and says so.
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    return [
        _task(
            f"Pgx {name}: batch of {BATCH} in one jitted loop, CPU, all cores", _pgx_steps(name), _batch_topic(), near
        )
        for name, near in _PGX_GAMES.items()
    ]


def _pgx_steps(name: str) -> Callable[[int], int]:
    jax, pgx = importlib.import_module("jax"), importlib.import_module("pgx")
    env = pgx.make(name)
    step = jax.vmap(importlib.import_module("pgx.experimental.wrappers").auto_reset(env.step, env.init))

    def turn(carry: Any, _: Any) -> tuple[Any, None]:
        state, key = carry
        key, choice, chance = jax.random.split(key, 3)
        logits = jax.numpy.where(state.legal_action_mask, 0.0, -jax.numpy.inf)
        actions = jax.random.categorical(choice, logits, axis=-1)
        return (step(state, actions, jax.random.split(chance, BATCH)), key), None

    turns = jax.jit(lambda carry: jax.lax.scan(turn, carry, None, length=_JITTED_STEPS)[0])
    key = jax.random.PRNGKey(0)
    carry = (jax.jit(jax.vmap(env.init))(jax.random.split(key, BATCH)), key)

    def run(amount: int) -> int:
        nonlocal carry
        rounds = -(-amount // (BATCH * _JITTED_STEPS))
        for _ in range(rounds):
            carry = turns(carry)
        jax.block_until_ready(carry)
        return rounds * BATCH * _JITTED_STEPS

    return run


# -- EnvPool -------------------------------------------------------------------------------------------------------

_ENVPOOL_GAMES = {"ConnectFour-v1": "petteia", "Othello-v1": "petteia", "Backgammon-v1": "yut_nori"}


def _envpool() -> list[Task]:
    known = importlib.import_module("envpool").list_all_envs()
    return [
        _task(f"EnvPool {name}: batch of {BATCH}, all cores", _envpool_steps(name), _batch_topic(), nearest)
        for name, nearest in _ENVPOOL_GAMES.items()
        if name in known
    ]


def _envpool_steps(name: str) -> Callable[[int], int]:
    envpool = importlib.import_module("envpool")
    env = envpool.make(name, env_type="gymnasium", num_envs=BATCH, num_threads=cores(), seed=0)
    rng = np.random.default_rng(0)
    mask = env.reset()[1]["legal_action_mask"]

    def run(amount: int) -> int:
        nonlocal mask
        steps = -(-amount // BATCH)
        for _ in range(steps):
            actions = (rng.random(mask.shape, np.float32) * mask).argmax(axis=1).astype(np.int32)
            mask = env.step(actions)[-1]["legal_action_mask"]
        return steps * BATCH

    return run


PEERS = (
    Peer("pettingzoo[classic]", "pettingzoo.classic.chess.chess", _pettingzoo),
    Peer("open_spiel", "pyspiel", _open_spiel),
    Peer("pgx", "pgx", _pgx),
    Peer("envpool", "envpool", _envpool),
)
"""The libraries, in the order of the table."""
