import numpy as np
import pytest
import torch

from tradgames_env.agents.checkpoint import NetworkRecord
from tradgames_env.agents.network import PolicyValueNetwork, masked_log_probabilities
from tradgames_env.envs.batch_games import BatchGames
from tradgames_env.rules.contract import MARGIN
from training.config import PoolConfig, RolloutConfig
from training.metrics import METRICS, game_metrics
from training.opponents import NOBODY, OpponentPool
from training.rollout import SelfPlay, sample_actions


def network_for(games: BatchGames, seed: int = 0) -> PolicyValueNetwork:
    network = PolicyValueNetwork(NetworkRecord.for_games([games.ruleset], 8, 1))
    network.initialise(torch.Generator().manual_seed(seed))
    return network


def self_play(game: str, count: int, pool: PoolConfig | None = None, **rollout: object) -> SelfPlay:
    games = BatchGames(game, num_games=count, seed=1, num_threads=1)
    settings = {"steps": 40, "games": count, "opening_share": 0.0, **rollout}
    config = RolloutConfig.model_validate(settings)
    return SelfPlay(games, OpponentPool(pool or PoolConfig(share=0.0), count), config, np.random.default_rng(2))


# -- sampling --------------------------------------------------------------------------------------------------------


def test_samples_follow_the_distribution() -> None:
    probabilities = torch.tensor([0.5, 0.0, 0.2, 0.3])
    uniform = torch.rand(100_000, generator=torch.Generator().manual_seed(0))
    actions = sample_actions(probabilities.log().expand(100_000, 4), uniform)
    shares = torch.bincount(actions, minlength=4) / 100_000
    torch.testing.assert_close(shares, probabilities, atol=0.01, rtol=0.0)


@pytest.mark.parametrize("uniform", [0.0, 1.0 - 2.0**-24])
def test_samples_are_legal_at_both_ends(uniform: float) -> None:
    generator = torch.Generator().manual_seed(3)
    legal = torch.rand(2000, 37, generator=generator) < 0.1
    legal[:, 17] = True
    log_probabilities = masked_log_probabilities(5 * torch.randn(2000, 37, generator=generator), legal)
    actions = sample_actions(log_probabilities, torch.full((2000,), uniform))
    assert legal.gather(1, actions[:, None]).all()


# -- what a rollout holds --------------------------------------------------------------------------------------------


def test_rollout_holds_the_games_as_played(game: str) -> None:
    play = self_play(game, 32)
    network = network_for(play.games)
    rollout, _ = play.collect(network)
    assert rollout.legal.any(axis=2).all()
    assert np.take_along_axis(rollout.legal, rollout.actions[:, :, None], axis=2).all()
    assert rollout.learned.all()
    with torch.no_grad():
        logits, values = network(torch.from_numpy(rollout.features[5]))
        found = masked_log_probabilities(logits, torch.from_numpy(rollout.legal[5]))
    chosen = found.gather(1, torch.from_numpy(rollout.actions[5])[:, None])[:, 0].numpy()
    np.testing.assert_allclose(rollout.log_probabilities[5], chosen, atol=1e-5)
    np.testing.assert_allclose(rollout.values[5], values.numpy(), atol=1e-5)
    np.testing.assert_array_equal(rollout.movers[-1], play.games.to_move)


def test_rewards_are_the_movers(game: str) -> None:
    play = self_play(game, 64, steps=400 if game == "petteia" else 150)
    scale = play.games.ruleset.rules.margin_scale(play.games.ruleset.options)
    rollout, counts = play.collect(network_for(play.games))
    assert counts.games == rollout.done.sum() > 0
    paid = rollout.rewards[..., 0]
    assert not paid[~rollout.done].any()
    wins = counts.natural_wins + counts.black_wins
    assert np.abs(paid).sum() == wins
    natural = np.where(rollout.movers[:-1] == 0, paid, -paid)
    assert (natural == 1).sum() == counts.natural_wins
    # Changes of margin add up: to the final margins of finished games and the present ones of the others.
    gains = np.where(rollout.movers[:-1] == 0, rollout.rewards[..., 1], -rollout.rewards[..., 1]) * scale
    for index in range(play.games.num_games):
        ends = np.flatnonzero(rollout.done[:, index])
        since = gains[ends[-1] + 1 if len(ends) else 0 :, index].sum()
        assert round(float(since)) == play.games.states[index, MARGIN]


def test_a_second_decision_keeps_the_mover(sprint: str) -> None:
    rollout, _ = self_play(sprint, 64).collect(network_for(BatchGames(sprint, seed=0)))
    same = (rollout.movers[1:] == rollout.movers[:-1]) & ~rollout.done
    assert 0.1 < same.mean() < 0.5


def test_openings_are_random_and_leave_consistent_arrays() -> None:
    play = self_play("puluc", 64, opening_share=1.0, opening_plies=20)
    fresh = BatchGames("puluc", num_games=64, seed=1, num_threads=1)
    assert (play.games.states != fresh.states).any(axis=1).mean() > 0.9
    before = (play.games.observations.copy(), play.games.action_masks.copy(), play.games.to_move.copy())
    play.restore(play.state())
    for old, new in zip(before, (play.games.observations, play.games.action_masks, play.games.to_move), strict=True):
        np.testing.assert_array_equal(old, new)


def test_careless_moves_are_uniform_and_not_learned(sprint: str) -> None:
    play = self_play(sprint, 512, careless_share=1.0, careless_level=1.0)
    network = network_for(play.games)
    with torch.no_grad():
        network.policy.bias[:] = torch.tensor([9.0, -9.0])  # always runs
    rollout, _ = play.collect(network)
    assert 0.3 < rollout.learned.mean() < 0.7
    assert (rollout.actions[rollout.learned] == 0).all()
    assert 0.45 < rollout.actions[~rollout.learned].mean() < 0.55


# -- opponents -------------------------------------------------------------------------------------------------------


def test_frozen_side_plays_its_own_policy_and_is_not_learned(sprint: str) -> None:
    play = self_play(sprint, 256, PoolConfig(share=1.0))
    runner, waiter = network_for(play.games), network_for(play.games, 1)
    with torch.no_grad():
        runner.policy.bias[:] = torch.tensor([9.0, -9.0])
        waiter.policy.bias[:] = torch.tensor([-9.0, 9.0])
    play.pool.add(waiter)
    play.pool.assign(np.ones(256, np.bool_), np.random.default_rng(0))
    rollout, counts = play.collect(runner)
    assert 0.2 < rollout.learned.mean() < 0.8
    assert (rollout.actions[rollout.learned] == 0).all()
    assert (rollout.actions[~rollout.learned] == 1).all()
    assert counts.pool_games > 0
    assert counts.pool_score == counts.pool_games


def test_opponents_change_only_when_a_game_starts(sprint: str) -> None:
    play = self_play(sprint, 64, PoolConfig(share=0.7, capacity=2), steps=1)
    network = network_for(play.games)
    for _ in range(60):
        play.pool.add(network)
        before = (play.pool.opponents.copy(), play.pool.colours.copy())
        policies = dict(play.pool.policies)
        rollout, _ = play.collect(network)
        going_on = ~rollout.done[0]
        np.testing.assert_array_equal(before[0][going_on], play.pool.opponents[going_on])
        np.testing.assert_array_equal(before[1][going_on], play.pool.colours[going_on])
        needed = set(play.pool.opponents.tolist()) - {NOBODY}
        assert needed <= set(policies) == set(play.pool.policies)
    assert max(play.pool.policies) == 59


def test_pool_keeps_the_latest_and_those_still_playing(sprint: str) -> None:
    pool = OpponentPool(PoolConfig(share=1.0, capacity=2), 4)
    network = network_for(BatchGames(sprint, seed=0))
    pool.add(network)
    pool.assign(np.array([True, False, False, False]), np.random.default_rng(0))
    for _ in range(5):
        pool.add(network)
    assert sorted(pool.policies) == [0, 4, 5]
    pool.assign(np.ones(4, np.bool_), np.random.default_rng(0))
    pool.add(network)
    assert 0 not in pool.policies


def test_recency_prefers_the_latest(sprint: str) -> None:
    network = network_for(BatchGames(sprint, seed=0))
    shares = []
    for recency in (0.0, 3.0):
        pool = OpponentPool(PoolConfig(share=1.0, capacity=4, recency=recency), 4000)
        for _ in range(4):
            pool.add(network)
        pool.assign(np.ones(4000, np.bool_), np.random.default_rng(0))
        shares.append((pool.opponents == 3).mean())
    assert shares[0] == pytest.approx(0.25, abs=0.03)
    assert shares[1] == pytest.approx(64 / 100, abs=0.03)


def test_snapshots_do_not_learn(sprint: str) -> None:
    pool = OpponentPool(PoolConfig(), 4)
    network = network_for(BatchGames(sprint, seed=0))
    pool.add(network)
    before = pool.policies[0].policy.bias.clone()
    with torch.no_grad():
        network.policy.bias += 1.0
    torch.testing.assert_close(pool.policies[0].policy.bias, before)
    assert not any(parameter.requires_grad for parameter in pool.policies[0].parameters())


def test_game_metrics_are_explained(sprint: str) -> None:
    _, counts = self_play(sprint, 64).collect(network_for(BatchGames(sprint, seed=0)))
    metrics = game_metrics(counts)
    assert set(metrics) <= set(METRICS)
    total = sum(metrics[f"games/{name}"] for name in ("natural_wins", "black_wins", "draws", "truncated"))
    assert total == pytest.approx(1.0)
