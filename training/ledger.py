"""The file of an arena: JSON lines, first what is played, then every pair of games as it is finished.

Lines are only ever appended, so that whatever stops the program, at most the last line is cut; it is dropped when the
file is opened again.
"""

import dataclasses
import json
import os
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from training.match import GameRecord

VERSION = 1

PAIRS_FILE = "pairs.jsonl"
"""Its usual name."""

Meeting = tuple[str, str]


class LedgerError(ValueError):
    """The file is damaged, or belongs to an arena of other settings."""


@dataclasses.dataclass(frozen=True)
class PairRecord:
    """Two games of one opening with sides swapped.

    Attributes:
        games: the first with the meeting's first player as natural.
        seconds_per_move: wall time of each player, mean over the games played together with these.
    """

    games: tuple[GameRecord, GameRecord]
    seconds_per_move: tuple[float, float]

    @property
    def pair(self) -> int:
        """Its number in the meeting."""
        return self.games[0].pair

    @property
    def points(self) -> float:
        """Of the meeting's first player, 0 to 2."""
        return self.games[0].points + self.games[1].points


class Ledger:
    """The pairs an arena has played, kept in a file.

    Args:
        path: made with the first pairs if it is missing; its folder at once.
        settings: JSON of what is played; a file that was begun with others is refused.
        facts: from ``provenance``, noted in a file that is begun.

    Attributes:
        cut: a cut last line was dropped.

    Raises:
        LedgerError: the file is damaged otherwise than at its end, or its settings are others.
        OSError: it cannot be read or written.
    """

    def __init__(self, path: pathlib.Path, settings: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
        self.path = path
        self.cut = False
        self._pairs: dict[Meeting, dict[int, PairRecord]] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = list(self._whole_lines()) if path.exists() else []
        # The first line is written with the first pairs, so that an arena that cannot be played leaves no file.
        self._first: list[Mapping[str, Any]] = (
            [] if lines else [{"arena": VERSION, "settings": settings, "provenance": facts}]
        )
        if lines:
            self._check(lines[0], settings)
        for number, line in enumerate(lines[1:], start=2):
            self._take(line, number)

    def pairs(self, meeting: Meeting) -> Mapping[int, PairRecord]:
        """The pairs that two players have finished, by number."""
        return self._pairs.get(meeting, {})

    def add(self, meeting: Meeting, pairs: Sequence[PairRecord]) -> None:
        """Note finished pairs, in the file at once; those that are there already stay as they are.

        Raises:
            OSError: the file cannot be written.
        """
        new = [pair for pair in pairs if pair.pair not in self.pairs(meeting)]
        self._append([*self._first, *(_to_json(meeting, pair) for pair in new)])
        self._first = []
        self._pairs.setdefault(meeting, {}).update({pair.pair: pair for pair in new})

    def _append(self, lines: Sequence[Mapping[str, Any]]) -> None:
        text = "".join(json.dumps(line, separators=(",", ":"), allow_nan=False) + "\n" for line in lines)
        with self.path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())

    def _whole_lines(self) -> Iterator[Any]:
        """What the lines say; a last one that is not whole is taken off the file."""
        data = self.path.read_bytes()
        start = 0
        for number, raw in enumerate(data.splitlines(keepends=True), start=1):
            line = _parsed(raw)
            if line is None and start + len(raw) < len(data):
                raise LedgerError(f"{self.path}: line {number} is damaged; delete the file to begin anew")
            if line is None:
                self.cut = True
                os.truncate(self.path, start)
                return
            yield line
            start += len(raw)

    def _check(self, found: Any, wanted: Mapping[str, Any]) -> None:
        settings = found.get("settings") if isinstance(found, dict) else None
        if not isinstance(settings, dict) or found.get("arena") != VERSION:
            raise LedgerError(f"{self.path} is no file of an arena of this version; name another or delete it")
        differing = [name for name in {**wanted, **settings} if settings.get(name) != wanted.get(name)]
        if differing:
            raise LedgerError(
                f"{self.path} was begun with other settings ({', '.join(differing)}); name another file, or delete it "
                "to begin anew"
            )

    def _take(self, line: Any, number: int) -> None:
        try:
            meeting, pair = _from_json(line)
        except (KeyError, TypeError, ValueError) as error:
            raise LedgerError(f"{self.path}: line {number} is damaged; delete the file to begin anew") from error
        self._pairs.setdefault(meeting, {})[pair.pair] = pair


def _parsed(raw: bytes) -> Any:
    """What a whole line says, None for one that is cut."""
    if not raw.endswith(b"\n"):
        return None
    try:
        return json.loads(raw)
    except ValueError:
        return None


def _to_json(meeting: Meeting, pair: PairRecord) -> dict[str, Any]:
    games = [dataclasses.asdict(game) for game in pair.games]
    return {"meeting": meeting, "games": games, "seconds_per_move": pair.seconds_per_move}


def _from_json(line: Any) -> tuple[Meeting, PairRecord]:
    one, other = line["meeting"]
    first, second = (GameRecord(**game | {"actions": tuple(game["actions"])}) for game in line["games"])
    own, others = line["seconds_per_move"]
    return (one, other), PairRecord((first, second), (own, others))
