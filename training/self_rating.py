"""Elo of a run so far: every checkpoint plays a few games against the two before it, the first against random play.

The games are played between iterations with few simulations or none, and touch nothing that the training depends on.
All results of the run are rated together, so the number goes on where a stopped run is resumed.
"""

import json
import pathlib
from collections.abc import Sequence

import numpy as np
import pydantic

from tradgames_env.agents import load_agent
from tradgames_env.agents.checkpoint import RECORD_FILE
from tradgames_env.rules.ruleset import Ruleset
from training.durable import write_file
from training.evaluate import DEFAULT_ANCHOR
from training.match import Openings, play_pairs, seed_agents
from training.ratings import PairResults, fit_ratings

RESULTS_FILE = "rating_{}_{}.json"
_OPENING_PLIES = (4, 6)
_PREVIOUS = 2
"""So many earlier checkpoints a new one plays."""


class RatingError(ValueError):
    """The results that were kept cannot be read."""


class SelfRating:
    """Rates the checkpoints of a run by their games against each other.

    Args:
        run_dir: of the run; results are kept in it, a file for each game.
        ruleset: the game.
        games: of a new checkpoint against each opponent, an even number; 0 plays none.
        effort: simulations, or positions, of a move.

    Raises:
        RatingError: results of earlier checkpoints cannot be read.
    """

    def __init__(self, run_dir: pathlib.Path, ruleset: Ruleset, games: int, effort: int) -> None:
        self._run_dir = run_dir
        self._ruleset = ruleset
        self._games = games
        self._effort = effort
        self._path = run_dir / RESULTS_FILE.format(ruleset.game, ruleset.variant)
        self._results = self._kept()

    def rate(self, folder: pathlib.Path) -> dict[str, float]:
        """Play a new checkpoint, and give ``rating/elo`` and ``rating/error``, half its 95 % interval.

        Raises:
            StorageError: the results cannot be written.
        """
        if not self._games:
            return {}
        for opponent in self._opponents(folder.name):
            self._results.append(PairResults(folder.name, opponent, self._play(folder, opponent)))
        rows = [(result.first, result.second, result.pair_scores) for result in self._results]
        write_file(self._path, json.dumps(rows).encode())
        rating = next(row for row in fit_ratings(self._results, DEFAULT_ANCHOR) if row.name == folder.name)
        assert rating.elo is not None
        assert rating.low is not None
        assert rating.high is not None
        return {"rating/elo": rating.elo, "rating/error": (rating.high - rating.low) / 2.0}

    def _opponents(self, name: str) -> Sequence[str]:
        """The newest of those whom results join to random play: without others, nobody could be rated."""
        joined = {DEFAULT_ANCHOR: None}
        for result in self._results:
            if result.first != name and result.second in joined:
                joined[result.first] = None
        return list(joined)[1:][-_PREVIOUS:] or [DEFAULT_ANCHOR]

    def _play(self, folder: pathlib.Path, opponent: str) -> tuple[float, ...]:
        other = opponent if opponent == DEFAULT_ANCHOR else f"{folder.with_name(opponent)}:{self._effort}"
        agents = load_agent(f"{folder}:{self._effort}"), load_agent(other)
        seed_agents(agents, np.random.SeedSequence(len(self._results)))
        openings = Openings(self._ruleset, len(self._results), _OPENING_PLIES)
        played = play_pairs(agents, openings, range(self._games // 2), lockstep=self._games)
        if played.stopped:
            raise KeyboardInterrupt
        first, second = played.records[::2], played.records[1::2]
        return tuple(a.points + b.points for a, b in zip(first, second, strict=True))

    def _kept(self) -> list[PairResults]:
        """Results of checkpoints that are there; a run may have lost its last ones when it was killed."""
        if not self._path.exists():
            return []
        checkpoints = {path.parent.name for path in (self._run_dir / "checkpoints").glob(f"*/{RECORD_FILE}")}
        present = checkpoints | {DEFAULT_ANCHOR}
        try:
            rows = pydantic.TypeAdapter(list[tuple[str, str, list[float]]]).validate_json(self._path.read_bytes())
        except pydantic.ValidationError as error:
            raise RatingError(f"{self._path} is damaged ({error.errors()[0]['msg']}); delete it to rate anew") from None
        return [
            PairResults(first, second, tuple(points))
            for first, second, points in rows
            if first in checkpoints and second in present
        ]
