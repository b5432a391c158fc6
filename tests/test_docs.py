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


def test_pages_include_files_in_the_form_mkdocs_reads() -> None:
    # A formatter that takes an include for Python puts blanks into it, and the page then shows the line itself.
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for line in page.read_text().splitlines():
            if re.match(r"\s*-+\s*8\s*<", line):
                assert re.fullmatch(r'--8<-- "[^"]+"', line), (page.name, line)
