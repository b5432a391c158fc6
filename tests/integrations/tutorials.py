"""Runs a tutorial as a reader would, in a process of its own."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]


def run_tutorial(name: str, steps: int) -> str:
    """What ``docs/tutorials/NAME.py`` prints with a budget of ``steps``."""
    result = subprocess.run(
        [sys.executable, f"docs/tutorials/{name}.py"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TUTORIAL_STEPS": str(steps), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout
