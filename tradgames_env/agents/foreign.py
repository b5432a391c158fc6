"""Agents that come from elsewhere, by a prefix: ``sb3:PATH``, ``onnx:FILE``, ``python:MODULE:FACTORY`` and others."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any

_PREFIXES: Mapping[str, tuple[str, str]] = {
    "pretrained": ("tradgames_env.agents.pretrained", "locate"),
    "sb3": ("tradgames_env.integrations.sb3", "load"),
    "openspiel": ("tradgames_env.integrations.openspiel", "load"),
    "onnx": ("tradgames_env.agents.onnx", "OnnxAgent"),
    "hub": ("tradgames_env.integrations.hub", "from_hub"),
    "python": ("tradgames_env.agents.foreign", "call_factory"),
}
"""Prefix: the module and function that make, of the text after it, an agent or anything else ``load_agent`` takes."""

PREFIXES: tuple[str, ...] = tuple(f"{prefix}:..." for prefix in _PREFIXES)
"""The prefixes, for help texts."""


def maker_of(prefix: str) -> Callable[[str], Any] | None:
    """What makes an agent of the text after a prefix; None if there is no such prefix.

    Raises:
        ImportError: the library is not installed; the message names the extra to install.
    """
    if prefix not in _PREFIXES:
        return None
    module, function = _PREFIXES[prefix]
    try:
        made: Callable[[str], Any] = getattr(importlib.import_module(module), function)
    except ModuleNotFoundError as error:
        raise ImportError(
            f"agents called {prefix}:... need {error.name}, which is not installed: "
            f"pip install 'tradgames-env[{prefix}]'",
            name=error.name,
        ) from error
    return made


def call_factory(text: str) -> Any:
    """What ``FACTORY()`` of ``MODULE`` returns, an agent or a function from positions to moves.

    Raises:
        ValueError: the text is not ``MODULE:FACTORY``, or there is no such module or factory.
    """
    module, _, name = text.partition(":")
    if not module or not name or module.startswith("."):
        raise ValueError(f"an agent of Python is 'python:MODULE:FACTORY', not {'python:' + text!r}")
    try:
        factory = getattr(importlib.import_module(module), name, None)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise ValueError(f"there is no module {error.name!r}") from error
    if not callable(factory):
        raise ValueError(f"module {module!r} has no function {name!r}")
    return factory()
