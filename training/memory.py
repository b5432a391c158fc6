"""How the memory of a training process is kept."""

import contextlib
import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Numbers of the parameters in glibc's ``malloc.h``."""
_KEPT = 1 << 30
"""Bytes: the most that both parameters take is one less than twice as many."""


def keep_freed_memory() -> None:
    """Let this process keep what it frees for its next allocation, instead of giving it back to the system.

    glibc maps large blocks anew each time, and the system clears every page of them: for the intermediate results of
    small networks that takes longer than computing them. Other C libraries are left as they are.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):
        set_parameter = ctypes.CDLL(None).mallopt
        set_parameter(_MMAP_THRESHOLD, _KEPT)
        set_parameter(_TRIM_THRESHOLD, _KEPT)
