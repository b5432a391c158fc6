import os
import pathlib
import subprocess
import sys

import pytest
import safetensors.numpy

from training.ranks import Ranks

ROOT = pathlib.Path(__file__).parents[2]
LEARN = "tests.training.learn_on_ranks"


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_rows_of_all_ranks_make_up_the_batch(count: int) -> None:
    rows = list(range(51))
    assert [row for rank in range(count) for row in rows[Ranks(rank, count).rows(51)]] == rows


def test_two_processes_learn_what_one_learns(tmp_path: pathlib.Path) -> None:
    torchrun = ["torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    for name, launcher in (("one", []), ("two", torchrun)):
        result = subprocess.run(
            [sys.executable, "-m", *launcher, LEARN, str(tmp_path / name)],
            env=environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert result.returncode == 0, result.stderr
    one, two = (safetensors.numpy.load_file(tmp_path / name) for name in ("one", "two"))
    assert one.keys() == two.keys()
    for name, array in one.items():
        assert abs(array - two[name]).max() < 1e-6
