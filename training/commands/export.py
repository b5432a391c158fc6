"""``tradgames export``."""

import dataclasses
import pathlib
import shlex
from typing import Annotated

import tyro

from training.commands.arguments import Name
from training.console import FAILED, FINE, PROGRAM, UserError, complain, mistakes, say


@dataclasses.dataclass(frozen=True)
class Export:
    """Write the network of a checkpoint as an ONNX file, for ONNX Runtime and for programs in other languages.

    The file is read back and compared with the checkpoint on positions from play before it gets its name.

    For example:
      tradgames export checkpoints/puluc --output puluc.onnx
      tradgames evaluate onnx:puluc.onnx --against greedy
    """

    checkpoint: Annotated[pathlib.Path, tyro.conf.Positional, tyro.conf.arg(metavar="CHECKPOINT")]
    """Folder of the checkpoint."""
    output: Annotated[pathlib.Path, tyro.conf.arg(aliases=["-o"], metavar="FILE")]
    """The file, such as petteia.onnx."""
    game: Name = None
    """Name of the game, where the checkpoint plays several."""
    variant: Name = None
    """Variant, where the checkpoint plays several."""

    def run(self, command: str) -> int:
        """Write the file and say how near it comes."""
        with mistakes():
            try:
                from training.export import ExportError, export_onnx
            except ModuleNotFoundError as error:
                raise UserError(
                    f"exporting needs {error.name}, which is not installed: pip install 'tradgames-env[onnx,train]'"
                ) from error
            try:
                export = export_onnx(self.checkpoint, self.output, game=self.game, variant=self.variant)
            except ExportError as error:
                complain(str(error))
                return FAILED
        spec = shlex.quote(f"onnx:{self.output}")
        say(
            f"file: {self.output}, at most {export.difference:.1g} from the checkpoint\n"
            f"next: {PROGRAM} evaluate {spec} --against random greedy"
        )
        return FINE
