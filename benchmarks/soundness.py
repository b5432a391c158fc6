"""Plays many random games of every variant and counts violations of what must hold; prints one line a variant.

``python benchmarks/soundness.py [--games 100000] [GAME ...]``

Checked in every game at every ply: a mover has a legal action, rewards are zero-sum and paid only at the end, a game
ends within its limit. Checked on a random sample of plies: the text loads again as the same position (which refuses
any position in which pieces are missing or too many), masks equal the legal actions of ``Position``, and the legal
moves are those of the slow reference in ``tests/reference``.
"""

import argparse
import importlib
import sys
import time

import numpy as np

import tradgames_env as tg
from tradgames_env.position import Position

PARALLEL = 2048
SAMPLES = 4
REFERENCE_EVERY = 8
LONGEST = 20_000
"""Plies no random game may reach."""


def check_sample(games: tg.BatchGames, index: int, with_reference: bool) -> int:
    """Violations found in one game as it stands."""
    position = games.position(index)
    ruleset = games.ruleset
    loaded = Position.from_ruleset(ruleset, position.text(), chance="explicit")
    violations = int(loaded.text() != position.text())
    violations += loaded.legal_actions() != position.legal_actions()
    violations += np.flatnonzero(games.action_masks[index]).tolist() != position.legal_actions()
    if with_reference:
        reference = importlib.import_module(f"tests.reference.{ruleset.game}")
        slow = reference.Game.from_text(ruleset.options, position.text())
        violations += sorted(slow.legal_moves()) != sorted(position.legal_moves())
    return violations


def check_variant(game: str, variant: str, wanted: int) -> tuple[int, int, int]:
    """(games, moves, violations) of at least ``wanted`` random games."""
    games = tg.BatchGames(game, variant, num_games=PARALLEL, seed=1)
    choose = np.random.default_rng(1)
    ages = np.zeros(PARALLEL, np.int64)
    played = moves = violations = steps = 0
    while played < wanted:
        violations += int((games.action_masks.sum(axis=1) == 0).sum())
        games.step(games.sample_legal_actions())
        over = games.terminated | games.truncated
        ages = np.where(over, 0, ages + 1)
        violations += int((games.rewards.sum(axis=1) != 0).sum())
        violations += int(games.rewards[~over].any()) + int((ages > LONGEST).sum())
        for sample, index in enumerate(choose.integers(PARALLEL, size=SAMPLES)):
            violations += check_sample(games, int(index), sample == 0 and steps % REFERENCE_EVERY == 0)
        played += int(over.sum())
        moves += PARALLEL
        steps += 1
    return played, moves, violations


def main() -> int:
    """Run what the command line asks for; 1 if anything was violated."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="GAME", default=list(tg.games()))
    parser.add_argument("--games", type=int, default=100_000)
    arguments = parser.parse_args()
    total = 0
    for game in arguments.names:
        for variant in tg.variants(game):
            start = time.perf_counter()
            played, moves, violations = check_variant(game, variant, arguments.games)
            seconds = time.perf_counter() - start
            print(f"{game}/{variant}: {played:,} games, {moves:,} moves, {violations} violations, {seconds:.0f} s")
            sys.stdout.flush()
            total += violations
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
