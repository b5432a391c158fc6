"""The C yardsticks: small programs in ``benchmarks`` that play the same random games, built when they are needed."""

import pathlib
import shutil
import subprocess
from collections.abc import Sequence

SOURCES = pathlib.Path(__file__).parent.parent / "benchmarks"
"""A game's program is ``<game>.c`` in here."""

FLAGS = ("-O3", "-march=native")

_COMPILERS = ("gcc", "cc", "clang")


class Yardstick:
    """A built program.

    Args:
        game: name of the game.
        path: the program.
    """

    def __init__(self, game: str, path: pathlib.Path) -> None:
        self.game = game
        self._path = path
        self._seed = 0

    def play(self, moves: int) -> tuple[int, float]:
        """Play random moves, with another seed each time; return their number and the seconds the program counted.

        Raises:
            subprocess.CalledProcessError: the program failed.
        """
        self._seed += 1
        counted = self.statistics(moves, self._seed)
        return int(counted["moves"]), counted["seconds"]

    def statistics(self, moves: int, seed: int) -> dict[str, float]:
        """What the program counts of so many random moves: games, their moves, the ways they ended.

        Raises:
            subprocess.CalledProcessError: the program failed.
        """
        words = self._output("play", str(moves), str(seed)).split()
        return {name: float(value) for name, value in zip(words[::2], words[1::2], strict=True)}

    def perft(self, depth: int) -> int:
        """Number of positions after ``depth`` moves from the start.

        Raises:
            subprocess.CalledProcessError: the program failed.
        """
        return int(self._output("perft", str(depth)))

    def _output(self, *arguments: str) -> str:
        return subprocess.run([self._path, *arguments], capture_output=True, text=True, check=True).stdout


def compiler() -> str | None:
    """Path of a C compiler; None where there is none."""
    return next((path for path in map(shutil.which, _COMPILERS) if path is not None), None)


def compiler_version() -> str:
    """The compiler's own first line about itself; empty where there is none."""
    path = compiler()
    if path is None:
        return ""
    return subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout.partition("\n")[0]


def build(games: Sequence[str], folder: pathlib.Path) -> tuple[list[Yardstick], list[str]]:
    """Build the programs of those games that have one.

    Args:
        games: names.
        folder: where the programs go.

    Returns:
        The programs, and a line for each that could not be built.
    """
    if not SOURCES.is_dir():
        return [], [f"No C yardsticks: {SOURCES} is not there; they come with the source tree."]
    built, complaints = [], []
    for source in (SOURCES / f"{game}.c" for game in games):
        if not source.exists():
            continue
        path = compiler()
        if path is None:
            complaints.append(f"No C yardstick for {source.stem}: no C compiler ({', '.join(_COMPILERS)}).")
            continue
        program = folder / source.stem
        # From the source's own folder, so that no long path stands where the compiler's complaint should.
        command = [path, *FLAGS, source.name, "-o", str(program.absolute())]
        result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=source.parent)
        if result.returncode == 0:
            built.append(Yardstick(source.stem, program))
        else:
            said = " ".join(result.stderr.split())
            complaints.append(f"No C yardstick for {source.stem}: {path} failed: {said[:200]}")
    return built, complaints
