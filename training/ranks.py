"""A learner on several processes that torchrun started: each takes its rows of every batch, gradients are summed.

``torchrun --nproc-per-node=2`` starts the same program twice; without torchrun there is one process, and nothing here
does anything. All processes hold the same weights and draw the same batch. Each computes the loss of its rows, summed
and divided by what the *whole* batch has (rows, weights); the sum of the gradients is then the gradient of one process,
whatever rows are masked, and each takes the same step.
"""

import contextlib
import dataclasses
import datetime
import os
from collections.abc import Iterable, Iterator

import torch
import torch.distributed
from torch import Tensor

# Longer than any round of self-play, for which the other processes wait; torchrun itself ends them when one dies.
_PATIENCE = datetime.timedelta(days=1)


@dataclasses.dataclass(frozen=True)
class Ranks:
    """The place of this process among those that learn together.

    Attributes:
        rank: 0 to count - 1.
        count: how many there are.
    """

    rank: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """Whether this process plays, reports and writes files, for all of them."""
        return self.rank == 0

    def rows(self, total: int) -> slice:
        """The rows of a batch of ``total`` that are this process's; those of all processes make up the batch."""
        return slice(total * self.rank // self.count, total * (self.rank + 1) // self.count)

    def sum_gradients(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        """Replace gradients by their sums over the processes, which must have gradients of the same parameters."""
        if self.count == 1:
            return
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        torch.distributed.all_reduce(flat)
        sizes = [gradient.numel() for gradient in gradients]
        for gradient, total in zip(gradients, torch.split(flat, sizes), strict=True):
            gradient.copy_(total.view_as(gradient))

    def sum(self, tensor: Tensor) -> Tensor:
        """The sum of a tensor over the processes."""
        if self.count == 1:
            return tensor
        total = tensor.clone()
        torch.distributed.all_reduce(total)
        return total

    def of_first(self, number: float) -> float:
        """The number that the first process gives, for all: clocks and signals differ between processes.

        All processes wait until each of them is there.
        """
        if self.count == 1:
            return number
        device = "cuda" if torch.distributed.get_backend() == "nccl" else "cpu"
        return self.sum(torch.tensor(number if self.first else 0.0, dtype=torch.float64, device=device)).item()


ALONE = Ranks()


def is_first() -> bool:
    """Whether this process is the first that torchrun started, or was not started by it."""
    return os.environ.get("RANK", "0") == "0"


@contextlib.contextmanager
def joined_ranks(device: torch.device) -> Iterator[Ranks]:
    """Join the processes that torchrun started; this process alone where it did not.

    Args:
        device: on which gradients are; gloo joins processes on CPUs, nccl on GPUs.
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        yield ALONE
        return
    backend = "gloo"
    if device.type == "cuda":
        backend = "nccl"
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.distributed.init_process_group(backend, timeout=_PATIENCE)
    try:
        yield Ranks(torch.distributed.get_rank(), torch.distributed.get_world_size())
    finally:
        torch.distributed.destroy_process_group()
