"""The same games compiled, compiled with bounds checks, and as plain Python."""

import os
import pathlib
import subprocess
import sys

import pytest

import tradgames_env as tg

ROOT = pathlib.Path(tg.__file__).parent.parent

# Whole batches are slow as plain Python: two games of some plies show whether anything differs.
SCRIPT = """
import hashlib, numpy as np, tradgames_env as tg
from tradgames_env.search.gumbel import GumbelSearch
for game in tg.games():
    for variant in tg.variants(game):
        games = tg.BatchGames(game, variant, num_games=2, seed=3)
        digest = hashlib.sha256()
        for _ in range({steps}):
            games.step(games.sample_legal_actions())
            for array in (games.states, games.histories, games.observations, games.action_masks, games.rewards):
                digest.update(array.tobytes())
        games.play_random({steps})
        digest.update(games.states.tobytes())
        position = games.position(0, seed=1)
        agents = [tg.load_agent(name) for name in ("greedy", "mcts:4")]
        for agent in agents:
            agent.seed(1)
            digest.update(agent.act(position).encode())
        logits = np.sin(np.arange(games.ruleset.num_actions, dtype=np.float32))
        found = GumbelSearch(games.ruleset).improve(
            lambda states, _: (np.tile(logits, (len(states), 1)), (states.sum(axis=1) % 7 / 10).astype(np.float32)),
            games.states, games.histories, np.array([20, 3], np.int32), np.array([5, 6], np.uint64),
        )
        digest.update(found.policies.tobytes() + found.values.tobytes())
        print(game, variant, digest.hexdigest())
"""


def play(steps: int, **environment: str) -> list[str]:
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT.format(steps=steps)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return result.stdout.splitlines()


@pytest.fixture(scope="module")
def compiled() -> list[str]:
    return play(25)


def test_plain_python_plays_the_same_games(compiled: list[str]) -> None:
    assert play(25, NUMBA_DISABLE_JIT="1") == compiled


def test_no_kernel_reads_or_writes_out_of_bounds(compiled: list[str], tmp_path: pathlib.Path) -> None:
    # A warm cache would silently skip the checks.
    checked = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert play(25, **checked) == compiled
