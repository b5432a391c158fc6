"""Runs the tests of the environments with the oldest and the newest versions of what they stand on.

``python tests/matrix.py [NAME ...]`` makes ``.venv-matrix/NAME`` for each row of ``ROWS``, and then asks pip for each
extra whether it can be installed beside the newest versions. It changes nothing else, and exits 1 if a row fails.
"""

import pathlib
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).parents[1]
ROWS = {
    "floors": ("pettingzoo==1.25.0", "gymnasium==1.1.0", "numpy==2.0.0"),
    "pettingzoo-floor": ("pettingzoo==1.25.0", "gymnasium==1.4.0"),
    "gymnasium-floor": ("pettingzoo==1.27.0", "gymnasium==1.1.0"),
    "numpy-floor": ("pettingzoo==1.27.0", "gymnasium==1.4.0", "numpy==2.0.0"),
    "rllib": ("pettingzoo==1.27.0", "gymnasium==1.2.2"),
    "agilerl": ("pettingzoo==1.26.1", "gymnasium==1.4.0"),
    "newest": ("pettingzoo", "gymnasium", "numpy"),
}
"""By name: what pip is asked for beside the package."""


def run(*arguments: str | pathlib.Path) -> bool:
    """Whether a command succeeds."""
    return subprocess.run(arguments, cwd=ROOT, check=False).returncode == 0


def row(name: str) -> bool:
    """Whether the tests of the environments pass with the versions of a row."""
    home = ROOT / ".venv-matrix" / name
    python = home / "bin" / "python"
    packages = ("--editable", ".[render]", "pytest", "hypothesis", *ROWS[name])
    return (
        run(sys.executable, "-m", "venv", home)
        and run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
        and run(python, "-m", "pytest", "-q", "tests/envs", "tests/integrations/test_gymnasium.py")
    )


def resolves(extra: str) -> bool:
    """Whether pip finds versions for an extra."""
    python = ROOT / ".venv-matrix" / "newest" / "bin" / "python"
    command = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--dry-run")
    return run(python, *command, "--ignore-installed", "--editable", f".[{extra}]")


def main(names: list[str]) -> int:
    """Run the rows named, or all of them and then the extras."""
    results = {name: row(name) for name in names or ROWS}
    if not names:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        results |= {f"[{extra}]": resolves(extra) for extra in project["optional-dependencies"]}
    sys.stdout.writelines(f"{'passed' if passed else 'FAILED'}  {name}\n" for name, passed in results.items())
    return 0 if all(results.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
