"""The generated pages say what the code says."""

import os
import pathlib
import re
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


def test_every_tutorial_is_shown_by_inclusion() -> None:
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md")]
    shown = {name for page in pages for name in re.findall(r'^--8<-- "([^":]+)', page, re.MULTILINE)}
    scripts = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs" / "tutorials").glob("*.py")}
    assert scripts | {"tests/toy_game.py", "tests/test_fifth_game.py", "README.md"} <= shown
    # What a formatter has made of an inclusion is shown as it stands, and no build of the site complains.
    assert not [
        line for page in pages for line in page.splitlines() if re.match(r"-+8\s*<", line) and line[:6] != "--8<--"
    ]
