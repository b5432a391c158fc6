"""Runs the tests of the environments with the oldest and the newest versions of what they stand on.

``python tests/matrix.py [NAME ...]`` makes ``.venv-matrix/NAME`` for each row of ``ROWS``. Without names it then asks a
resolver for each extra, and for each two of them, whether there are versions that fit together. What came out is noted
in ``build/matrix.json``; nothing else is changed. Exits 1 if a row fails, or an extra has no versions.
"""

import itertools
import json
import pathlib
import re
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ElementTree
from typing import Any

ROOT = pathlib.Path(__file__).parents[1]
HOMES = ROOT / ".venv-matrix"
RECORD = ROOT / "build" / "matrix.json"
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
TESTS = ("tests/envs", "tests/integrations/test_gymnasium.py")
STANDS_ON = ("pettingzoo", "gymnasium", "numpy", "numba")
HOLD_BACK = ("pettingzoo", "gymnasium", "numpy", "torch", "tensordict")
"""What the libraries want some version of."""
COLLECTIONS = ("bench", "dev", "integrations")
"""Extras that are made of others, and are not asked in pairs."""


def run(*arguments: str | pathlib.Path) -> bool:
    """Whether a command succeeds."""
    return subprocess.run(arguments, cwd=ROOT, check=False).returncode == 0


def environment(name: str, *packages: str) -> pathlib.Path | None:
    """The Python of ``.venv-matrix/NAME`` with packages, or None if they cannot be installed."""
    python = HOMES / name / "bin" / "python"
    made = run(sys.executable, "-m", "venv", HOMES / name) and run(
        # Without compiling what is never imported, which would take as much space as a library.
        *(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"),
        *packages,
    )
    return python if made else None


def row(name: str) -> dict[str, Any]:
    """What the tests of the environments do with the versions of a row: versions, and how many tests did what."""
    python = environment(name, "--editable", ".[render]", "pytest", *ROWS[name])
    if python is None:
        return {"passed": False, "tests": {}, "versions": {}}
    report = HOMES / f"{name}.xml"
    report.unlink(missing_ok=True)
    passed = run(python, "-m", "pytest", "-q", *TESTS, f"--junitxml={report}")
    return {"passed": passed, "tests": counts(report), "versions": versions(python)}


def counts(report: pathlib.Path) -> dict[str, int]:
    """How many tests passed, were skipped and failed."""
    if not report.exists():
        return {}
    suite = next(ElementTree.parse(report).iter("testsuite"))
    ran, skipped = int(suite.attrib["tests"]), int(suite.attrib["skipped"])
    failed = int(suite.attrib["failures"]) + int(suite.attrib["errors"])
    return {"passed": ran - skipped - failed, "skipped": skipped, "failed": failed}


def versions(python: pathlib.Path) -> dict[str, str]:
    """What an environment has of the packages that the games stand on, and its Python."""
    source = (
        "import importlib.metadata as m, json, platform, sys;"
        "print(json.dumps({'Python': platform.python_version()} | {name: m.version(name) for name in sys.argv[1:]}))"
    )
    said = subprocess.run([python, "-c", source, *STANDS_ON], capture_output=True, text=True, check=True).stdout
    found: dict[str, str] = json.loads(said)
    return found


def resolved(resolver: pathlib.Path, wheel: pathlib.Path, *extras: str) -> dict[str, Any]:
    """What a resolver answers about extras together: the versions found, or why there are none."""
    asked = f"tradgames-env[{','.join(extras)}] @ {wheel.as_uri()}"
    answer = subprocess.run(
        [resolver, "pip", "compile", "--quiet", "--no-header", "--no-annotate", "-"],
        input=asked,
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode:
        return {"resolved": False, "reason": reason(answer.stderr)}
    pairs = dict(line.split()[0].split("==") for line in answer.stdout.splitlines() if "==" in line)
    return {"resolved": True, "versions": {name: pairs[name] for name in HOLD_BACK if name in pairs}}


def reason(said: str) -> str:
    """Why there are no versions, without what follows from it for our own package."""
    told = " ".join(said[said.find("Because") :].split())
    sentences = re.split(r"(?<=\.) (?=And because)", told)
    return " ".join(sentence for sentence in sentences if "tradgames-env" not in sentence) or told


def extras_and_pairs() -> tuple[dict[str, Any], dict[str, Any]]:
    """What the resolver answers for each extra, and the pairs of extras that it finds no versions for."""
    python = environment("resolver", "uv")
    wheels = HOMES / "wheel"
    if python is None or not run(python, "-m", "pip", "wheel", "--quiet", "--no-deps", ".", "--wheel-dir", wheels):
        raise SystemExit("no resolver, or no wheel to ask it about")
    resolver, wheel = python.parent / "uv", max(wheels.glob("*.whl"), key=lambda path: path.stat().st_mtime)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = sorted(project["optional-dependencies"])
    alone = {extra: resolved(resolver, wheel, extra) for extra in extras}
    single = [extra for extra in extras if extra not in COLLECTIONS]
    together = {" + ".join(two): resolved(resolver, wheel, *two) for two in itertools.combinations(single, 2)}
    return alone, {pair: answer["reason"] for pair, answer in together.items() if not answer["resolved"]}


def note(known: dict[str, Any]) -> None:
    """Write down what is known so far."""
    RECORD.parent.mkdir(parents=True, exist_ok=True)
    RECORD.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def main(names: list[str]) -> int:
    """Run the rows named, or all of them and then the extras."""
    known = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {"rows": {}}
    for name in names or ROWS:
        known["rows"][name] = row(name)
        note(known)
    if not names:
        known["extras"], known["apart"] = extras_and_pairs()
        note(known)
    results = {name: known["rows"][name]["passed"] for name in names or ROWS}
    results |= {f"[{extra}]": answer["resolved"] for extra, answer in known.get("extras", {}).items()}
    sys.stdout.writelines(f"{'passed' if passed else 'FAILED'}  {name}\n" for name, passed in results.items())
    sys.stdout.writelines(f"apart   [{pair}]: {why}\n" for pair, why in known.get("apart", {}).items())
    return 0 if all(results.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
