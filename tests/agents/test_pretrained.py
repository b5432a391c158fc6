"""Policies that come with the package are found by name."""

import pathlib

import pytest

import tradgames_env as tg
from tradgames_env.agents.pretrained import locate, pretrained_folder, pretrained_names


def test_every_folder_has_a_name() -> None:
    folders = {path.name for path in pretrained_folder().iterdir() if path.is_dir()}
    assert {name.replace("/", "-") for name in pretrained_names()} == folders
    assert {"petteia", "puluc", "yote"} <= folders


def test_a_name_may_be_followed_by_an_effort() -> None:
    assert pathlib.Path(locate("puluc")) == pretrained_folder() / "puluc"
    assert locate("puluc:0").endswith("puluc:0")


def test_they_load_and_play() -> None:
    position = tg.Position("puluc", seed=1)
    assert tg.load_agent("pretrained:puluc").act(position) in position.legal_moves()


def test_unknown_names_are_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"no pretrained policy 'pulu'; did you mean 'puluc'\? known: "):
        tg.load_agent("pretrained:pulu")
