"""``tradgames solve``."""

import dataclasses
import json
from typing import Annotated

import tyro

from training.commands.arguments import Count, Game, Name, RuleOptions, asked_ruleset
from training.console import FAILED, FINE, UserError, complain, mistakes, progress, say


@dataclasses.dataclass(frozen=True)
class Solve:
    """Compute the exact value of every position of a variant, for the agent called perfect.

    Ctrl-C stops; the same command goes on from there. The table is kept in the folder that the environment variable
    TRADGAMES_TABLES names, or in the user's cache folder.

    For example:
      tradgames solve puluc --variant mini
      tradgames solve puluc --option pieces=4 --dry-run
      tradgames solve yut_nori --variant duel --json
    """

    game: Game
    """Name of the game."""
    variant: str = "box"
    """Variant."""
    option: RuleOptions = ()
    """A rule option that replaces the variant's."""
    part: Name = None
    """Solve only this part of the game, such as endings-2v3."""
    tolerance: float = 1e-6
    """Games with dice: done when one more step changes no value by more than this."""
    memory: Annotated[float | None, tyro.conf.arg(metavar="GIB")] = None
    """Memory that may be used; what is free when not given."""
    threads: Count = None
    """Threads; as many as there are cores when not given."""
    again: bool = False
    """Solve anew even if the table is there."""
    check: bool = False
    """Games with dice: put the table to the test, by a million positions and a hundred thousand games."""
    dry_run: bool = False
    """Only say what it takes."""
    json: bool = False
    """Print JSON."""

    def run(self, command: str) -> int:
        """Solve and print the value of the start."""
        with mistakes():
            from tradgames_env.solving.indexing import TableError
            from training import solve

            ruleset = asked_ruleset(self.game, self.variant, self.option)
            request = solve.Request(
                ruleset, self.part, self.tolerance, self.memory, self.threads, self.again, self.check
            )
            planned = solve.planned(request)
        if self.dry_run:
            say(json.dumps(planned, indent=2) if self.json else solve.plan_text(ruleset, planned))
            return FINE
        try:
            result = solve.solved(request, command, console=progress())
        except TableError as error:
            raise UserError(str(error)) from error
        except OSError as error:
            complain(f"{error.filename}: {error.strerror}" if error.filename else str(error))
            return FAILED
        except MemoryError:
            complain("there is not enough memory")
            return FAILED
        except KeyboardInterrupt:
            complain("interrupted; what is solved so far is kept, and the same command goes on from there")
            return FAILED
        say(json.dumps(result, indent=2) if self.json else solve.result_text(ruleset, result))
        return FINE
