"""The command line: ``tradgames train | evaluate | arena | play | export | solve | perft | bench | render``.

Exit codes: 0 done, 1 failed or interrupted, 2 a mistake in what was asked for, which is told in one line.
"""

import contextlib
import io
import os
import shlex
import sys
from collections.abc import Sequence
from typing import Annotated

import tyro

from training.commands import Arena, Bench, Evaluate, Export, Perft, Play, Render, Solve, Train
from training.console import FAILED, FINE, MISTAKE, PROGRAM, UserError, complain, say

Command = Train | Evaluate | Arena | Play | Export | Solve | Perft | Bench | Render


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments in (["--version"], ["-V"]):
        from tradgames_env.version import __version__

        say(f"{PROGRAM} {__version__}")
        return FINE
    try:
        return _parse(arguments).run(shlex.join([PROGRAM, *arguments]))
    except UserError as error:
        complain(str(error))
        return MISTAKE
    except KeyboardInterrupt:
        complain("interrupted")
        return FAILED
    except BrokenPipeError:
        # Who reads the output has seen enough; Python must not complain when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else FAILED


def _parse(arguments: list[str]) -> Command:
    """The command that the arguments describe; asks for help leave by ``SystemExit(0)``.

    Raises:
        UserError: they describe none.
    """
    arguments = _settings_to_set(arguments)
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors):
            return tyro.cli(
                Annotated[Train, tyro.conf.subcommand("train")]
                | Annotated[Evaluate, tyro.conf.subcommand("evaluate")]
                | Annotated[Arena, tyro.conf.subcommand("arena")]
                | Annotated[Play, tyro.conf.subcommand("play")]
                | Annotated[Export, tyro.conf.subcommand("export")]
                | Annotated[Solve, tyro.conf.subcommand("solve")]
                | Annotated[Perft, tyro.conf.subcommand("perft")]
                | Annotated[Bench, tyro.conf.subcommand("bench")]
                | Annotated[Render, tyro.conf.subcommand("render")],
                prog=PROGRAM,
                description="Traditional games to learn by self-play. --version says which release this is.",
                args=arguments,
                config=(tyro.conf.FlagCreatePairsOff,),
            )
    except SystemExit as stop:
        if stop.code in (0, None):
            if arguments[:1] == ["train"]:
                say(_settings_help())
            raise
        raise UserError(_one_line(errors.getvalue())) from None


def _settings_to_set(arguments: list[str]) -> list[str]:
    """``train --ppo.epochs 4`` as ``train --set ppo.epochs=4``."""
    if arguments[:1] != ["train"]:
        return arguments
    rest = iter(arguments)
    changed: list[str] = []
    for argument in rest:
        name, equals, value = argument.partition("=")
        if not (name.startswith("--") and "." in name):
            changed.append(argument)
            continue
        key = name[2:].replace("-", "_")
        following = value if equals else next(rest, None)
        if following is None:
            raise UserError(f"{name} needs a value")
        changed += ["--set", f"{key}={following}"]
    return changed


def _settings_help() -> str:
    """Every setting of a training configuration with its default and meaning."""
    from training.config import all_settings

    lines = ["settings of the configuration, as --set NAME=VALUE; those with a dot in their name also as --NAME VALUE:"]
    for name, field in all_settings().items():
        default = "required" if field.is_required() else f"default {field.default!r}"
        lines.append(f"  --{name} ({default})\n      {' '.join((field.description or '').split())}")
    return "\n".join(lines)


def _one_line(box: str) -> str:
    """What tyro says about wrong arguments, without its frame, its title and its advice to read the help."""
    said: list[str] = []
    for line in box.splitlines():
        text = line.strip("│─ ")
        if text.startswith(("For full helptext", "Argument helptext")):
            break
        if text and not line.startswith(("╭", "╰")):
            said.append(text)
    return f"{' '.join(said)} (see {PROGRAM} --help)"


if __name__ == "__main__":
    sys.exit(main())
