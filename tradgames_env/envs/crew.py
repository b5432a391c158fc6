"""Threads that share the work on a batch: awake between steps that follow one another, asleep when nothing comes.

Waking a thread takes as long as some hundred moves. So the threads stay in compiled code, without the interpreter's
lock, and look for work on a *desk* in memory; only after a while without any do they wait to be woken. Each thread has
a share of the games that it begins with, in small chunks; who has finished takes chunks from the others. What comes
out does not depend on who does what.
"""

import atexit
import operator
import os
import queue
import threading
import time
import weakref
from typing import Any, NamedTuple

import numpy as np
from numba import boolean, config, int16, int32, int64, intp, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from tradgames_env.encoding import CANVAS, Canvas, Encoder, write_observation
from tradgames_env.rules.batch import OVER, ROWS, SKIP, Rows, play_games, sample_games, step_game
from tradgames_env.rules.compiling import entry_point, kernel
from tradgames_env.rules.table import VIEW_SLOT, view_at

STEP, SAMPLE, PLAY = range(3)
"""Jobs: carry out ``orders`` and write all that follows; draw actions; play random moves, then the same as STEP.

An interrupt falls between two jobs or while one is waited for. So a job leaves nothing to be written by the next one.
"""

_SMALLEST_SHARE = 64
"""Games a thread: handing fewer over takes longer than playing them."""
_CHUNK = 32
"""Games that a thread takes at once."""
_PATIENCE = 30_000
"""Looks at the desk before a thread goes to sleep, some 100 microseconds."""

# The desk: each cell in a cache line of its own, so that a look at one is not disturbed by writing to another.
_LINE = 8
_JOB, _DONE, _ASLEEP, _NEXT = (_LINE * cell for cell in range(4))
"""Job; games done; threads asleep; then for each share the number of the chunk to be taken next."""
_FAR_BYTES = 128
"""Two cache lines, which processors like to fetch together."""
_DESK, _ACTIONS, _SITES, _SCALARS = int64[::1], int32[::1], int16[:, ::1], int16[::1]


class Scratch(NamedTuple):
    """One thread's own space."""

    actions: Any
    """(A,) int32, for a list of legal actions."""
    sites: Any
    """(site features, sites) int16, for a view."""
    scalars: Any
    """(scalars,) int16, for a view."""


_SCRATCH: Any = types.NamedTuple((_ACTIONS, _SITES, _SCALARS), Scratch)  # type: ignore[no-untyped-call]


def _cell(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    view = context.make_array(array_type)(context, builder, array)
    return cgutils.get_item_pointer(context, builder, array_type, view, [index])  # type: ignore[no-untyped-call]


def _looking(typing_context: Any, desk: Any, index: Any) -> Any:
    """What stands in a cell now; nothing is read before it that comes after it."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(_cell(context, builder, desk, *arguments), "seq_cst", 8)

    return int64(desk, intp), build


def _writing(typing_context: Any, desk: Any, index: Any, value: Any) -> Any:
    """Write a cell, after all that was written before."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, index, value = arguments
        builder.store_atomic(value, _cell(context, builder, desk, array, index), "seq_cst", 8)
        return context.get_dummy_value()

    return types.void(desk, intp, int64), build


def _adding(typing_context: Any, desk: Any, index: Any, amount: Any) -> Any:
    """Add to a cell, and return what stood there before: no two threads that add 1 get the same number."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, index, amount = arguments
        return builder.atomic_rmw("add", _cell(context, builder, desk, array, index), amount, "seq_cst")

    return int64(desk, intp, int64), build


def _added(desk: Any, index: int, amount: int) -> int:
    before = int(desk[index])
    desk[index] += amount
    return before


_look: Any = intrinsic(_looking)
_write: Any = intrinsic(_writing)
_add: Any = intrinsic(_adding)
if config.DISABLE_JIT:  # type: ignore[attr-defined]  # and there is one thread
    _look, _write, _add = operator.getitem, operator.setitem, _added


@kernel(types.void(ROWS, CANVAS, _SCRATCH, int64, int64))
def _step_games(rows, canvas, scratch, begin, end):  # type: ignore[no-untyped-def]
    view = view_at(rows.kernels[VIEW_SLOT])
    for i in range(begin, end):
        order = rows.orders[i]
        if order == OVER:
            rows.rewards[i, 0] = 0.0
            rows.rewards[i, 1] = 0.0
        elif order != SKIP:
            step_game(rows, scratch.actions, i, order)
            write_observation(
                view, rows.params, rows.states[i], rows.histories[i], rows.seats[i], scratch.sites, scratch.scalars,
                canvas, i,
            )  # fmt: skip


@kernel(int64(_DESK, int64))
def _post(desk, job):  # type: ignore[no-untyped-def]
    """Lay a job on the desk, the one before being done; return how many threads are asleep and have to be woken."""
    _write(desk, _JOB, job)
    _write(desk, _DONE, 0)
    for cell in range(_NEXT, desk.shape[0], _LINE):
        _write(desk, cell, 0)
    asleep = _look(desk, _ASLEEP)
    _add(desk, _ASLEEP, -asleep)
    return asleep


@kernel(types.void(_DESK))
def _lie_down(desk):  # type: ignore[no-untyped-def]
    """One more thread is asleep."""
    _add(desk, _ASLEEP, 1)


@kernel(boolean(ROWS, CANVAS, _SCRATCH, _DESK, int64, int64, boolean))
def _attend(rows, canvas, scratch, desk, share, shares, helps):  # type: ignore[no-untyped-def]
    """Look at the desk and work, beginning with the chunks of one's own share, until there is none to be taken.

    A helper stays until there was nothing for some time. The thread that posted the job stays until all of it is done
    and returns True, or until it has waited so long that it had better let the others have this core.
    """
    count = rows.orders.shape[0]
    chunk = count if shares == 1 else _CHUNK
    looks = 0
    while looks < _PATIENCE:
        looks += 1
        if count * share // shares + chunk * _look(desk, _NEXT + _LINE * share) >= count * (share + 1) // shares:
            if not helps and _look(desk, _DONE) >= count:
                return True
            continue
        looks = 0
        done = 0
        for turn in range(share, share + shares):
            owner = turn % shares
            begin, end = count * owner // shares, count * (owner + 1) // shares
            while begin + chunk * _look(desk, _NEXT + _LINE * owner) < end:
                first = begin + chunk * _add(desk, _NEXT + _LINE * owner, 1)
                last = min(first + chunk, end)
                # Read only now: as long as a chunk that was taken is not reported done the job cannot change.
                job = _look(desk, _JOB)
                if job == SAMPLE:
                    sample_games(rows, scratch.actions, first, last)
                else:
                    if job == PLAY:
                        play_games(rows, scratch.actions, first, last)
                    _step_games(rows, canvas, scratch, first, last)
                done += max(last - first, 0)
        _add(desk, _DONE, done)
    return False


_post_at_once, _attend_at_once = entry_point(_post), entry_point(_attend)


def _live(bell: "queue.SimpleQueue[bool]", errors: list[BaseException], *place: Any) -> None:
    """A helper's life: sleep until the bell rings, work, and so on; the bell's False ends it, or an error."""
    desk = place[3]
    try:
        while True:
            _lie_down(desk)
            if not bell.get():
                return
            _attend(*place, True)
    except BaseException as error:  # for the thread that waits for the work
        errors.append(error)


def _ring_out(bell: "queue.SimpleQueue[bool]", helpers: int) -> None:
    """Tell helpers to end, without waiting: garbage is collected in any thread, under any lock."""
    for _ in range(helpers):
        bell.put(False)


_HELPERS: "weakref.WeakKeyDictionary[threading.Thread, queue.SimpleQueue[bool]]" = weakref.WeakKeyDictionary()
"""Every helper there is, and its bell."""


@atexit.register
def _end_helpers() -> None:
    """Wait for all helpers to end: a thread that comes out of compiled code when there is no interpreter crashes."""
    helpers = list(_HELPERS.items())
    for _, bell in helpers:
        bell.put(False)
    for thread, _ in helpers:
        if thread.is_alive():
            thread.join()


def _apart(array: NDArray[Any]) -> NDArray[Any]:
    """A copy with no other data near it: two threads that write into one cache line slow each other down."""
    margin = _FAR_BYTES // array.itemsize
    space = np.zeros(margin + array.size + margin, array.dtype)[margin:-margin].reshape(array.shape)
    space[...] = array
    return space


class Crew:
    """This thread and its helpers, which carry out jobs on a batch; the helpers end with it.

    A forked child has no helpers and needs a crew of its own, see ``process``.

    Args:
        threads: how many may work, this one included.
        rows: the games.
        canvas: their observations.
        encoder: what wrote the canvas.

    Attributes:
        process: id of the process that the helpers live in.
        is_working: a job was posted, and an interrupt has cut short the waiting for it: ``finish`` it before anything
            that it reads or writes is touched.
    """

    def __init__(self, threads: int, rows: Rows, canvas: Canvas, encoder: Encoder) -> None:
        self.process = os.getpid()
        self.is_working = False
        self._games = len(rows.orders)
        shares = 1 if config.DISABLE_JIT else max(1, min(threads, self._games // _SMALLEST_SHARE))  # type: ignore[attr-defined]
        desk = _apart(np.full(_NEXT + _LINE * shares, self._games, np.int64))
        desk[_ASLEEP] = 0
        spaces = (np.zeros(rows.masks.shape[1], np.int32), *encoder.blank_view())
        places = [(rows, canvas, Scratch(*map(_apart, spaces)), desk, share, shares) for share in range(shares)]
        self._desk = desk
        self._place = places[0]
        self._bell: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._errors: list[BaseException] = []
        self._threads = [
            threading.Thread(
                target=_live, args=(self._bell, self._errors, *place), name=f"tradgames-{place[4]}", daemon=True
            )
            for place in places[1:]
        ]
        self._ring_out = weakref.finalize(self, _ring_out, self._bell, len(self._threads))
        self._ring_out.atexit = False  # all helpers together end then
        for thread in self._threads:
            _HELPERS[thread] = self._bell
            thread.start()

    def dismiss(self) -> None:
        """End the helpers, and wait until they have ended."""
        self._ring_out()
        for thread in self._threads:
            thread.join()

    def run(self, job: int) -> None:
        """Do one of the jobs in all games, the one before being finished.

        Raises:
            RuntimeError: as ``finish``.
        """
        self.is_working = True
        try:
            for _ in range(_post_at_once(self._desk, job)):
                self._bell.put(True)
        finally:
            self.finish()

    def finish(self) -> None:
        """Work until the job is done in all games, those that helpers have taken included.

        Raises:
            RuntimeError: a helper has died of an error in a game's kernels, or in a fork amid its work.
        """
        while not _attend_at_once(*self._place, False):
            # Threads are not asked whether they live: an interrupt in ``is_alive`` makes Python take them for dead.
            if self._errors:
                raise RuntimeError("a helper thread of the batch ended with an error") from self._errors[0]
            if self.process != os.getpid():
                raise RuntimeError("the process was forked after an interrupt, while helper threads were at work")
            time.sleep(0)
        self.is_working = False
