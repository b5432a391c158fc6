import json
import os
import pathlib
import subprocess
import sys

import pytest
import safetensors.numpy

from training.ranks import Ranks

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_rows_of_all_ranks_make_up_the_batch(count: int) -> None:
    rows = list(range(51))
    assert [row for rank in range(count) for row in rows[Ranks(rank, count).rows(51)]] == rows


def launched(processes: int, *arguments: str) -> str:
    """Standard output of a module that is started alone or by torchrun."""
    torchrun = ["torch.distributed.run", "--standalone", f"--nproc-per-node={processes}", "-m"]
    result = subprocess.run(
        [sys.executable, "-m", *(torchrun if processes > 1 else []), *arguments],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def assert_same_weights(one: pathlib.Path, two: pathlib.Path) -> None:
    first, second = (safetensors.numpy.load_file(path) for path in (one, two))
    assert first.keys() == second.keys()
    for name, array in first.items():
        assert abs(array - second[name]).max() < 1e-6, name


def test_two_processes_learn_what_one_learns(tmp_path: pathlib.Path) -> None:
    for processes in (1, 2):
        launched(processes, "tests.training.learn_on_ranks", str(tmp_path / f"{processes}"))
    assert_same_weights(tmp_path / "1", tmp_path / "2")


RUN = """
method = "alphazero"
progress = "off"
device = "cpu"
budget = {steps = 512}
network = {width = 16, blocks = 1}
search = {simulations = 6, fast_simulations = 2}
selfplay = {shards = 2, games = 16, decisions = 16, horizon = 4, engine = "serial"}
replay = {first_window = 200, window = 400}
learner = {batch_size = 61}
"""
ONE_GAME = 'game = {name = "petteia", variant = "mini"}'
TWO_GAMES = """
[[games]]
name = "petteia"
variant = "mini"
[[games]]
name = "puluc"
variant = "mini"
pool = {share = 0.0}
search = {improver = "expectimax"}
"""


@pytest.mark.parametrize(("games", "replays"), [(ONE_GAME, ["."]), (TWO_GAMES, ["petteia_mini", "puluc_mini"])])
def test_a_run_on_two_processes_learns_what_one_learns(games: str, replays: list[str], tmp_path: pathlib.Path) -> None:
    # One iteration: later games are played by weights that differ in their last digits, and so may differ in a move.
    (tmp_path / "run.toml").write_text(RUN.replace("512", str(512 * len(replays))) + games)
    train = ("training.cli", "train", "--config", str(tmp_path / "run.toml"), "--run-dir")
    for processes in (1, 2):
        output = launched(processes, *train, str(tmp_path / f"{processes}"))
        assert output.count("checkpoint: ") == 1
    for replay in replays:
        files = [tmp_path / name / "replay" / replay / "it_000001.safetensors" for name in "12"]
        assert files[0].read_bytes() == files[1].read_bytes()
    assert_same_weights(*(tmp_path / name / "checkpoints" / "final" / "model.safetensors" for name in "12"))
    one, two = (json.loads((tmp_path / name / "metrics.jsonl").read_text()) for name in "12")
    assert one.keys() == two.keys()
    for name in ("loss/policy", "loss/value", "loss/margin", "policy/kl", "gradient/norm"):
        assert one[name] == pytest.approx(two[name], rel=1e-4)
    launched(2, *train, str(tmp_path / "2"), "--resume", "--steps", str(1024 * len(replays)))
    for replay in replays:
        assert (tmp_path / "2" / "replay" / replay / "it_000002.safetensors").exists()
