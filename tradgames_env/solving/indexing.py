"""What an index is: a numbering of a game's positions, behind which a table holds one value a position.

An index only numbers positions; the rules stay where they are, in the game's kernels. It speaks in the *mover's frame*:
a position with black to move has the number of its mirror image with natural to move, and values are the mover's.
``tradgames_env/solving/<game>.py`` has ``index(options, part)``, which gives the ``PositionIndex`` of a ruleset or of
one named part of it, such as an ending, and raises ``TableError`` for what it does not cover.
"""

import dataclasses
import importlib
import importlib.util
from typing import Any

import numpy as np
from numba import int16, int32, int64, uint64
from numpy.typing import NDArray

from tradgames_env.rules.contract import Kernel
from tradgames_env.rules.ruleset import Ruleset

Tables = NDArray[np.int64]

RANK = int64(int32[::1], int64[::1], int16[::1])
"""``rank(params, tables, state) -> number``: of a position in which a throw is due (dice games) or a seat decides (all
others); -1 where the index does not cover it, games that are over among them."""
UNRANK = int64(int32[::1], int64[::1], int64, int16[::1])
"""``unrank(params, tables, number, out_state) -> 1``: write the state row, natural to move, counters of turns and quiet
moves 0; or return 0 where the numbering has a hole, with whatever is then in the row."""
PREDECESSORS = int64(int32[::1], int64[::1], int16[::1], int16[::1], uint64[::1], int32[::1], int64[::1])
"""``predecessors(params, tables, state, scratch, history, actions, out_numbers) -> n``: list the numbers of the
positions of the same layer, the other side to move, that have a move to ``state``. In deterministic games only; in no
layer does a side move twice in a row. ``state`` has natural to move and may be written over; ``scratch`` is space for
another row, ``actions`` and ``out_numbers`` for as many as the game has actions."""


class TableError(ValueError):
    """A table is missing, damaged, made for something else, or cannot be made; one line says what to do."""


@dataclasses.dataclass(frozen=True)
class Layer:
    """The numbers ``begin`` to ``end - 1``, which lead only to each other and to earlier layers."""

    name: str
    begin: int
    end: int


@dataclasses.dataclass(frozen=True, eq=False)
class PositionIndex:
    """A numbering of positions.

    Attributes:
        name: of the numbering, e.g. ``"puluc"``.
        version: raised whenever a position gets another number.
        tables: (T,) int64, handed to both kernels.
        layers: in the order in which they are solved; together they cover 0 .. count - 1.
        rank: kernel of signature RANK.
        unrank: kernel of signature UNRANK.
        predecessors: kernel of signature PREDECESSORS; None in games with dice.
        a_part: name of one of its parts, for advice; None where the game is solved whole.
        ignores: options that change no value, such as who begins or after how many turns play is cut off.
    """

    name: str
    version: int
    tables: Tables
    layers: tuple[Layer, ...]
    rank: Kernel
    unrank: Kernel
    predecessors: Kernel | None = None
    a_part: str | None = None
    ignores: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """Numbers given, holes included."""
        return self.layers[-1].end


def load_index(ruleset: Ruleset, part: str | None = None) -> PositionIndex:
    """The index of a ruleset, or of one part of it.

    Raises:
        TableError: the game has no index, or it does not cover these options or this part.
    """
    name = f"tradgames_env.solving.{ruleset.game}"
    if importlib.util.find_spec(name) is None:
        raise TableError(f"{ruleset.game} cannot be solved: it has no index of positions")
    index: PositionIndex = importlib.import_module(name).index(ruleset.options, part)
    return index


def telling_options(ruleset: Ruleset, index: PositionIndex) -> dict[str, Any]:
    """The options on which values depend, by name."""
    values = dataclasses.asdict(ruleset.options)
    return {name: value for name, value in values.items() if name not in index.ignores}


def table_label(ruleset: Ruleset, index: PositionIndex, part: str | None = None) -> str:
    """Name of the folder of a table: ``box``, ``box+pieces=3``, ``box-endings-2v3``.

    Rulesets with the same values have the same label: it names the variant that is nearest, the first of equals.
    """
    mine = telling_options(ruleset, index)
    changes_of = {}
    for variant, options in ruleset.rules.variants.items():
        theirs = dataclasses.asdict(options)
        changes_of[variant] = [f"+{name}={value}" for name, value in mine.items() if value != theirs[name]]
    nearest = min(changes_of, key=lambda variant: len(changes_of[variant]))
    return "".join([nearest, *changes_of[nearest], f"-{part}" if part else ""])
