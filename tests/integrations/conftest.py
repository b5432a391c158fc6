"""The option that writes down what the tests of the libraries did."""

import pathlib

import pytest

from tests.integrations.compatibility import Recorder


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--record-compatibility FILE``, when the tests of this folder are run by themselves."""
    parser.addoption("--record-compatibility", metavar="FILE", type=pathlib.Path, help="JSON file to add results to")


def pytest_configure(config: pytest.Config) -> None:
    """Watch the whole run, but not in each of several processes."""
    path = config.getoption("--record-compatibility", default=None)
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(path))
