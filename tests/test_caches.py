"""Machine code on disk: quick first starts, read-only installs, several processes at once, upgrades in place.

Everything here runs in processes of its own on copies of the package.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import time
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import pytest

import tradgames_env as tg
from tradgames_env.rules.compiling import digest, kernel, kernel_at

PACKAGE = pathlib.Path(tg.__file__).parent
END = """
import sys
names = [name for name in sys.modules if name.startswith("tradgames_env")]
values = [value for name in names for value in vars(sys.modules[name]).values()]
print(sum(sum(getattr(getattr(value, "stats", None), "cache_misses", {}).values()) for value in values))
"""
FIRST_MOVE = """
import tradgames_env as tg
print(len(tg.Position("petteia", seed=1).legal_moves()))
"""
RESET = """
import tradgames_env as tg
print(tg.env("petteia").reset(seed=1))
"""
# The kernels of one game alone, which take the least time to compile.
PULUC = """
import numpy as np
from tradgames_env.rules import puluc
options = puluc.PulucOptions()
params, state, history = puluc.RULES.params(options), np.zeros(40, np.int16), np.zeros(0, np.uint64)
actions = np.zeros(11, np.int32)
puluc.initial(params, state, history)
for turn in range(40):
    puluc.apply_chance(params, state, history, turn * 7 % 5)
    count = puluc.legal(params, state, history, actions)
    puluc.apply(params, state, history, actions[turn % count])
print(state.tolist())
"""
BATCH = """
import tradgames_env as tg
games = tg.BatchGames("puluc", num_games=2, seed=3)
games.play_random(20)
games.step(games.sample_legal_actions())
print(games.states.tolist(), games.action_masks.tolist())
"""


# Two small kernels outside the package, beside it, one of which reads constants of another file.
SMALL_FILES = {
    "small.py": """
from constants import STEP
from tradgames_env.rules.compiling import kernel

@kernel("int64(int64)")
def once(x):
    return x + STEP

@kernel("int64(int64)")
def twice(x):
    return once(once(x))
""",
    "constants.py": "STEP = 1",
}
SMALL = """
import sys
sys.modules["tradgames_env"] = type(sys)("tradgames_env")  # spares importing all of it
sys.modules["tradgames_env"].__path__ = ["tradgames_env"]
import constants
{between}
import small
sys.modules["tradgames_env.small"] = small  # to be counted
print(small.twice(0))
"""
UNCHANGED = SMALL.format(between="")


class Copy:
    """A copy of the package, without caches unless it is a copy of another copy."""

    def __init__(self, folder: pathlib.Path, other: "Copy | None" = None) -> None:
        self.package = folder / "site" / "tradgames_env"
        self.user_cache = folder / "user"
        if other is not None:
            shutil.copytree(other.package.parent, self.package.parent)
            return
        shutil.copytree(PACKAGE, self.package, ignore=shutil.ignore_patterns("__pycache__"))
        for name, source in SMALL_FILES.items():
            (self.package.parent / name).write_text(source)

    def start(self, script: str, **environment: str) -> "subprocess.Popen[str]":
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
        return subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", script + END],
            env={**inherited, "PYTHONPATH": str(self.package.parent), "XDG_CACHE_HOME": str(self.user_cache)}
            | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.package.parent,
        )

    def run(self, script: str, **environment: str) -> tuple[str, int, str]:
        """What a script prints, the number of kernels it compiled, and what it says on stderr."""
        return self.end(self.start(script, **environment))

    def end(self, process: "subprocess.Popen[str]") -> tuple[str, int, str]:
        output, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        *lines, misses = output.splitlines()
        return "\n".join(lines), int(misses), errors

    def edit(self, file: str, old: str, new: str) -> None:
        path = self.package / file
        source = path.read_text()
        assert source.count(old) == 1, old
        path.write_text(source.replace(old, new))

    def refuse_caches(self) -> None:
        """No file can be put beside the sources, as in a read-only install, not even by root."""
        folders = (path for path in self.package.iterdir() if path.is_dir())
        for folder in (self.package.parent, self.package, *folders):
            (folder / "__pycache__").write_text("")

    def machine_code(self) -> list[pathlib.Path]:
        return sorted(self.package.parent.rglob("*.nb[ic]"))


@pytest.fixture
def copy(tmp_path: pathlib.Path) -> Copy:
    """Without machine code."""
    return Copy(tmp_path)


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> tuple[Copy, dict[str, str]]:
    """A copy with the machine code of some scripts, and what they print."""
    copy = Copy(tmp_path_factory.mktemp("used"))
    return copy, {script: copy.run(script)[0] for script in (PULUC, BATCH)}


def test_first_start_says_what_it_does_and_later_ones_are_quick(copy: Copy) -> None:
    _, compiled, said = copy.run(FIRST_MOVE)
    assert compiled > 0
    assert said.splitlines() == [
        "tradgames_env: compiling rules.chance, once ...",
        "tradgames_env: compiling rules.masks, once ...",
        "tradgames_env: compiling rules.petteia, once ...",
    ]
    silence = 'import logging; logging.getLogger("tradgames_env").setLevel("ERROR")\n'
    assert copy.run(silence + RESET)[2] == ""
    _, compiled, said = copy.run(RESET)
    assert (compiled, said) == (0, "")


def test_a_read_only_install_keeps_its_machine_code_with_the_user(copy: Copy) -> None:
    copy.refuse_caches()
    assert copy.run(UNCHANGED)[:2] == ("2", 2)
    assert copy.machine_code() == []
    assert list(copy.user_cache.rglob("*.nbc"))
    assert copy.run(UNCHANGED) == ("2", 0, "")


def test_without_any_folder_to_write_to_it_works_and_says_how_to_help(copy: Copy) -> None:
    copy.refuse_caches()
    copy.user_cache.write_text("")
    result, _, said = copy.run(UNCHANGED)
    assert result == "2"
    assert said == (
        "tradgames_env: compiling small, at every start (set NUMBA_CACHE_DIR to a folder that can be written to) ...\n"
    )


def test_processes_may_compile_at_once(copy: Copy) -> None:
    together = [copy.start(UNCHANGED) for _ in range(2)]
    assert [copy.end(process)[0] for process in together] == ["2", "2"]
    assert copy.run(UNCHANGED) == ("2", 0, "")


@pytest.mark.parametrize(
    ("script", "file", "old", "new"),
    [
        (PULUC, "rules/contract.py", "\nHEADER_SIZE = 8", "\nHEADER_SIZE = 10"),
        (BATCH, "rules/chance.py", "0xBF58476D1CE4E5B9", "0xBF58476D1CE4E5BB"),
    ],
)
def test_an_upgrade_in_place_takes_effect(
    used: tuple[Copy, dict[str, str]], tmp_path: pathlib.Path, script: str, file: str, old: str, new: str
) -> None:
    copy = Copy(tmp_path, used[0])
    assert copy.run(script) == (used[1][script], 0, "")
    copy.edit(file, old, new)
    after, compiled, _ = copy.run(script)
    assert compiled > 0
    assert after != used[1][script]
    assert after == copy.run(script, NUMBA_DISABLE_JIT="1")[0]
    assert copy.run(script) == (after, 0, "")


def test_an_upgrade_under_a_running_process_leaves_nothing_stale(copy: Copy) -> None:
    # The process has read the old constant and compiles with it when the file already holds the new one.
    between = 'open("constants.py", "w").write("STEP = 10")'
    assert copy.run(SMALL.format(between=between))[:2] == ("2", 2)
    assert copy.run(UNCHANGED)[:2] == ("20", 2)
    assert copy.run(UNCHANGED)[:2] == ("20", 0)


@pytest.mark.parametrize("length", [0, 300])
def test_broken_files_are_compiled_anew(copy: Copy, length: int) -> None:
    assert copy.run(UNCHANGED)[:2] == ("2", 2)
    files = copy.machine_code()
    assert len(files) == 4
    for path in files:
        path.write_bytes(path.read_bytes()[:length])
    assert copy.run(UNCHANGED)[:2] == ("2", 2)
    assert copy.run(UNCHANGED) == ("2", 0, "")


def test_an_index_without_its_data_is_no_harm(copy: Copy) -> None:
    copy.run(UNCHANGED)
    for path in copy.machine_code():
        if path.suffix == ".nbc":
            path.unlink()
    assert copy.run(UNCHANGED)[:2] == ("2", 2)


def test_what_older_sources_left_is_removed_after_a_day(copy: Copy) -> None:
    copy.run(UNCHANGED)
    first = set(copy.machine_code())
    (copy.package.parent / "constants.py").write_text("STEP = 10")
    copy.run(UNCHANGED)
    second = set(copy.machine_code())
    assert first < second  # a process that began before the edit may still want them
    yesterday = time.time() - 25 * 3600
    for path in first:
        os.utime(path, (yesterday, yesterday))
    (copy.package.parent / "constants.py").write_text("STEP = 100")
    assert copy.run(UNCHANGED)[0] == "200"
    assert not first & set(copy.machine_code())
    assert second - first < set(copy.machine_code())


def test_every_kernel_of_the_package_is_compiled_by_the_decorator() -> None:
    for path in PACKAGE.rglob("*.py"):
        if path.name != "compiling.py":
            assert "njit" not in path.read_text(), path


# -- what the name of a file is made of ----------------------------------------------------------------------------


def digest_of(**changes: int) -> str:
    constants = types.ModuleType("constants")
    constants.SHARED = changes.get("shared", 1)  # type: ignore[attr-defined]
    values = {"INNER": changes.get("inner", 1), "OUTER": changes.get("outer", 1), "constants": constants}
    source = """
def helper(x):
    return x + INNER
def top(x):
    return helper(x) + OUTER + constants.SHARED + {number}
""".format(number=changes.get("number", 1))
    exec(source, values)
    top: Callable[..., int] = values["top"]  # type: ignore[assignment]
    return digest(top)


@pytest.mark.parametrize("what", ["inner", "outer", "shared", "number"])
def test_the_digest_sees_constants_helpers_and_modules(what: str) -> None:
    assert digest_of() == digest_of()
    assert digest_of(**{what: 2}) != digest_of()


def test_the_digest_sees_the_options() -> None:
    assert digest(_double, {"fastmath": True}) != digest(_double)


def test_a_kernel_may_call_itself_and_takes_options() -> None:
    assert _factorial(5) == 120


def _double(x):  # type: ignore[no-untyped-def]
    return 2 * x


@kernel("int64(int64)", error_model="numpy")
def _factorial(n):  # type: ignore[no-untyped-def]
    if n < 2:
        return 1
    return n * _factorial(n - 1)


class _Pair(NamedTuple):
    first: int
    second: int


class _Swapped(NamedTuple):
    second: int
    first: int


def test_the_digest_sees_the_order_of_fields() -> None:
    number = numba.types.int64
    pair, swapped = (number(numba.types.NamedTuple((number, number), kind)) for kind in (_Pair, _Swapped))
    assert digest(_double, {}, pair) == digest(_double, {}, pair)
    assert digest(_double, {}, pair) != digest(_double, {}, swapped)


def test_the_digest_sees_the_signature_of_a_kernel_called_by_address() -> None:
    def made_for(signature: Any) -> str:
        at = kernel_at(signature)
        return digest(lambda address: at(address))

    assert made_for(numba.types.int64(numba.types.int64)) == made_for(numba.types.int64(numba.types.int64))
    assert made_for(numba.types.int64(numba.types.int64)) != made_for(numba.types.int64(numba.types.int32))
