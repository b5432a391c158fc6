"""Five gradient steps of a small network, by as many processes as torchrun starts; the first writes the weights."""

import sys

import safetensors.torch
import torch

from training.ranks import joined_ranks


def learn(path: str) -> None:
    generator = torch.Generator().manual_seed(1)
    network = torch.nn.Sequential(torch.nn.Linear(12, 32), torch.nn.ReLU(), torch.nn.Linear(32, 7))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)
    optimiser = torch.optim.AdamW(network.parameters(), lr=1e-2)
    with joined_ranks(torch.device("cpu")) as ranks:
        for step in range(5):
            # 51 rows: the processes' shares are uneven, and so are the weights that most rows do not have at all.
            features = torch.randn((51, 12), generator=generator)
            targets = torch.randint(7, (51,), generator=generator)
            weights = torch.rand(51, generator=generator).round() + (torch.arange(51) == 50)
            mine = ranks.rows(51)
            losses = torch.nn.functional.cross_entropy(network(features[mine]), targets[mine], reduction="none")
            optimiser.zero_grad()
            (losses * weights[mine]).sum().div(weights.sum()).backward()
            ranks.sum_gradients(network.parameters())
            torch.nn.utils.clip_grad_norm_(network.parameters(), 0.5)
            optimiser.step()
            assert ranks.of_first(ranks.rank + step) == step
            assert ranks.sum(torch.ones(2)).tolist() == [ranks.count] * 2
        if ranks.first:
            safetensors.torch.save_file(network.state_dict(), path)


if __name__ == "__main__":
    learn(sys.argv[1])
