"""Where a number comes from: the command, machine, date and versions that go with every published result."""

import datetime
import importlib.metadata
import os
import pathlib
import platform
from collections.abc import Sequence
from typing import Any

from tradgames_env.processors import cores
from tradgames_env.version import __version__

_PACKAGES = ("numpy", "numba", "gymnasium", "pettingzoo", "torch")


def provenance(command: str, seed: int | None = None) -> dict[str, Any]:
    """``{"command", "date", "seed", "machine", "versions"}``, ready for JSON; ``date`` is UTC in ISO 8601."""
    return {
        "command": command,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "seed": seed,
        "machine": machine(),
        "versions": versions(),
    }


def machine() -> dict[str, Any]:
    """Processor, cores this process may use, memory in GiB and operating system."""
    return {
        "processor": _processor(),
        "cores": cores(),
        "memory_gib": _memory_gib(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def versions(packages: Sequence[str] = _PACKAGES) -> dict[str, str]:
    """Versions of Python, of this package and of the installed ones among ``packages``, without importing them."""
    found = {"python": platform.python_version(), "tradgames-env": __version__}
    for name in packages:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _processor() -> str:
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown processor"


def _memory_gib() -> float | None:
    try:
        pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None
    return round(pages * size / 2**30, 1)
