"""Trains sb3-contrib's MaskablePPO by self-play for some minutes: the yardstick of another library.

``python benchmarks/sb3_baseline.py GAME VARIANT MINUTES SEED FILE.zip``

It gets what a user of it would give it: the compiled ``VecEnv``, a network as wide as ours, frozen copies of itself as
opponents, and a learning rate that falls to 0 over the time.
"""

import argparse
import pathlib
import time

from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback, CallbackList

from tradgames_env.integrations.sb3 import SelfPlay, VecGames, save

LEARNING_RATE = 1e-3


class Clock(BaseCallback):  # type: ignore[misc]
    """Ends the training after some seconds, and lets the learning rate fall with them."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Share of the time that is left, 0 to 1."""
        return max(0.0, (self._end - time.monotonic()) / self._seconds)

    def _on_step(self) -> bool:
        return self.left > 0.0


def main() -> None:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("game")
    parser.add_argument("variant")
    parser.add_argument("minutes", type=float)
    parser.add_argument("seed", type=int)
    parser.add_argument("file", type=pathlib.Path)
    wanted = parser.parse_args()
    games = VecGames(wanted.game, wanted.variant, num_envs=256, opponent="random")
    clock = Clock(60.0 * wanted.minutes)
    model = MaskablePPO(
        "MlpPolicy", games, n_steps=64, batch_size=2048, n_epochs=4, ent_coef=0.01, gamma=1.0, seed=wanted.seed,
        learning_rate=lambda _: LEARNING_RATE * clock.left, policy_kwargs={"net_arch": [256, 256]}, device="cpu",
    )  # fmt: skip
    model.learn(10**12, callback=CallbackList([SelfPlay(every=500_000), clock]))
    wanted.file.parent.mkdir(parents=True, exist_ok=True)
    save(model, wanted.file)
    print(f"{model.num_timesteps:,} decisions in {wanted.minutes:g} minutes")


if __name__ == "__main__":
    main()
