"""The commands of ``tradgames``: each a record of its arguments and a ``run``. Heavy imports wait until a run."""

from training.commands.arena import Arena
from training.commands.bench import Bench
from training.commands.evaluate import Evaluate
from training.commands.export import Export
from training.commands.perft import Perft
from training.commands.play import Play
from training.commands.render import Render
from training.commands.solve import Solve
from training.commands.train import Train

__all__ = ["Arena", "Bench", "Evaluate", "Export", "Perft", "Play", "Render", "Solve", "Train"]
