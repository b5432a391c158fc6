"""The generated pages say what the code says."""

import os
import pathlib
import subprocess
import sys

import tradgames_env as tg
from tests.conftest import ALL_VARIANTS

ROOT = pathlib.Path(tg.__file__).parent.parent


def test_generated_pages_are_current() -> None:
    # A process of its own: the toy game of the tests may be registered in this one.
    result = subprocess.run(
        [sys.executable, "docs/generate.py", "--check"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def test_readme_names_every_variant() -> None:
    readme = (ROOT / "README.md").read_text()
    for game, variant in ALL_VARIANTS:
        assert f"`{variant}`" in readme, (game, variant)
