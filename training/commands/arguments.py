"""Arguments that several commands take, and the ruleset they name."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from training.console import rule_options

if TYPE_CHECKING:
    from tradgames_env.agents.base import Agent
    from tradgames_env.rules.ruleset import Ruleset

Game = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="GAME")]
RuleOptions = Annotated[tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(metavar="NAME=VALUE")]

Name = Annotated[str | None, tyro.conf.arg(metavar="NAME")]
AgentName = Annotated[str | None, tyro.conf.arg(metavar="AGENT")]
Text = Annotated[str | None, tyro.conf.arg(metavar="TEXT")]
File = Annotated[pathlib.Path | None, tyro.conf.arg(metavar="FILE")]
Folder = Annotated[pathlib.Path | None, tyro.conf.arg(metavar="FOLDER")]
Count = Annotated[int | None, tyro.conf.arg(metavar="INT")]
Asked = Annotated[
    Literal["moves", "policy"] | None,
    # Or a wrong word would be answered with "None" as one to choose.
    tyro.conf.arg(
        metavar="{moves,policy}", constructor=Literal["moves", "policy"], help_behavior_hint="(default: None)"
    ),
]

LadderName = Annotated[
    Literal["quick", "standard", "deep"] | None,
    tyro.conf.arg(
        metavar="{quick,standard,deep}",
        constructor=Literal["quick", "standard", "deep"],
        help_behavior_hint="(default: None)",
    ),
]


def asked_ruleset(game: str, variant: str, option: Sequence[str]) -> "Ruleset":
    """The ruleset of a game, a variant and options as texts, ``NAME=VALUE``.

    Raises:
        ValueError: there is no such game, variant or option, or the value is wrong.
    """
    from tradgames_env.rules.ruleset import load_ruleset

    plain = load_ruleset(game, variant)
    return load_ruleset(game, variant, **rule_options(plain.options, option)) if option else plain


def agreed_ruleset(
    players: "Mapping[str, Agent]", game: str | None, variant: str | None, option: Sequence[str]
) -> "Ruleset":
    """``asked_ruleset``, where what is not named is left to the players: checkpoints say what they play.

    Raises:
        ValueError: as ``training.evaluate.agreed_ruleset``, or an option is wrong.
    """
    from training import evaluate

    if not option:
        return evaluate.agreed_ruleset(players, game, variant, {})
    # Which options there are depends on the game, which a checkpoint may say.
    plain = evaluate.agreed_ruleset(players if game is None else {}, game, variant, {})
    return evaluate.agreed_ruleset(players, game, variant, rule_options(plain.options, option))
