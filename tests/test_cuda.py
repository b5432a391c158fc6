"""The rules' own functions play in CUDA threads too: nothing in them needs the host. See docs/gpu.md."""

import os
import pathlib
import subprocess
import sys

import pytest

import tradgames_env as tg

ROOT = pathlib.Path(tg.__file__).parent.parent


def on_cuda(*arguments: str, **environment: str) -> list[str]:
    """Output of tests/on_cuda.py in a process of its own, since numba reads NUMBA_ENABLE_CUDASIM once."""
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.on_cuda", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return result.stdout.splitlines()


def test_cuda_threads_play_the_games_of_the_batch(game: str) -> None:
    lines = on_cuda("simulate", game, NUMBA_ENABLE_CUDASIM="1")
    assert [line.split()[0] for line in lines] == ["box", "mini"]
    ended = sum(int(line.split()[2]) for line in lines)
    positions = [int(line.split()[4]) for line in lines]
    assert ended > 0
    assert min(positions) > 100


def test_kernels_compile_to_ptx(game: str) -> None:
    line = on_cuda("compile", game)[-1]
    if line == "no nvvm":
        pytest.skip("the CUDA toolkit's libnvvm is not installed; a GPU is not needed")
    assert line.startswith("entry calls 0 lines ")
