"""How many processors there are to work with."""

import os


def cores() -> int:
    """Cores this process may use; those of the machine where the system does not tell them apart."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
