"""Evaluators for tests of searches: answers that depend on nothing but a row, whatever stands beside it."""

import zlib

import numpy as np

import tradgames_env as tg
from tradgames_env.rules.ruleset import Ruleset
from tradgames_env.search.evaluation import Evaluator


def random_answer(ruleset: Ruleset, state: np.ndarray, seed: int, spread: float) -> tuple[np.ndarray, np.float32]:
    rng = np.random.default_rng([zlib.crc32(state.tobytes()), seed])
    return rng.normal(size=ruleset.num_actions).astype(np.float32), np.float32(rng.uniform(-spread, spread))


def random_network(ruleset: Ruleset, seed: int = 0, spread: float = 0.9) -> Evaluator:
    """Logits and utilities that are noise, but always the same for the same position."""

    def evaluate(states: np.ndarray, histories: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        assert len(states) == len(histories) > 0
        assert (states[:, 2] == 0).all(), "a throw is due"
        assert (states[:, 3] == 0).all(), "the game is over"
        answers = [random_answer(ruleset, state, seed, spread) for state in states]
        return np.stack([logits for logits, _ in answers]), np.array([utility for _, utility in answers])

    return evaluate


def flat_network(ruleset: Ruleset) -> Evaluator:
    """A network that knows nothing."""

    def evaluate(states: np.ndarray, histories: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros((len(states), ruleset.num_actions), np.float32), np.zeros(len(states), np.float32)

    return evaluate


def decisions(game: str, variant: str, count: int, plies: int, seed: int = 7) -> tuple[Ruleset, np.ndarray, np.ndarray]:
    """Positions of random games, with fresh histories."""
    games = tg.BatchGames(game, variant, num_games=count, seed=seed)
    games.play_random(plies)
    ruleset = games.ruleset
    states, histories = games.states.copy(), games.histories.copy()
    for state, history in zip(states, histories, strict=True):
        ruleset.rules.start_history(ruleset.params, state, history)
    return ruleset, states, histories
