import json
import pathlib
import shutil
import signal
import threading

import numpy as np
import pytest
import safetensors.numpy
import torch
from rich.console import Console

from tradgames_env.agents.checkpoint import CheckpointError, NetworkRecord, read_checkpoint
from tradgames_env.agents.network import PolicyValueNetwork
from training import ppo
from training.checkpoint import read_state, state_files
from training.config import BudgetConfig, ConfigError, PPOConfig, TrainConfig, parse_config
from training.durable import Checkpoints
from training.run import RESUME_FOLDER, TrainingError, budget_used
from training.train import train

QUIET = Console(quiet=True)
SMALL = {
    "network": {"width": 16, "blocks": 1},
    "rollout": {"games": 24, "steps": 8, "careless_share": 0.3},
    "ppo": {"minibatch_size": 64, "epochs": 2},
    "pool": {"share": 0.4, "every": 2, "capacity": 2},
    "shaping": {"weight": 0.5},
    "threads": 1,
    "seed": 3,
}
ITERATION = 24 * 8


def small(sprint: str, iterations: int, **changes: object) -> TrainConfig:
    return parse_config(
        {**SMALL, "game": {"name": sprint}, "budget": {"steps": iterations * ITERATION}, **changes}, "test"
    )


def advantages(
    rewards: list[float], values: list[float], movers: list[int], done: list[bool], discount: float, trace: float
) -> list[float]:
    result = ppo.generalised_advantages(
        np.array(rewards, np.float32)[:, None, None],
        np.array(values, np.float32)[:, None, None],
        np.array(movers, np.int8)[:, None],
        np.array(done)[:, None],
        discount,
        trace,
    )
    return [round(float(number), 6) for number in result[:, 0, 0]]


# -- advantages against closed forms -------------------------------------------------------------------------------


def test_final_reward_reaches_the_last_decisions_of_both_sides() -> None:
    # Colours 0, 1, 0; colour 0 wins by the last one.
    assert advantages([0, 0, 1], [0, 0, 0, 9], [0, 1, 0, 1], [False, False, True], 1.0, 1.0) == [1, -1, 1]


def test_two_decisions_running_keep_the_sign() -> None:
    # Colour 0 decides twice (a bonus), then colour 1 decides and wins.
    assert advantages([0, 0, 1], [0, 0, 0, 9], [0, 0, 1, 0], [False, False, True], 1.0, 1.0) == [-1, -1, 1]
    # One step ahead: the value of the second decision is the same side's own.
    assert advantages([0, 0, 1], [0.1, 0.4, 0.3, 9], [0, 0, 1, 0], [False, False, True], 1.0, 0.0) == [0.3, -0.7, 0.7]


def test_lambda_and_discount_by_hand() -> None:
    discount, trace = 0.9, 0.8
    rewards, values, movers = [0.2, -0.1, 0.5], [0.3, -0.2, 0.6, 0.4], [0, 1, 1, 0]
    errors = [0.2 - discount * -0.2 - 0.3, -0.1 + discount * 0.6 - -0.2, 0.5 - discount * 0.4 - 0.6]
    third = errors[2]
    second = errors[1] + discount * trace * third
    first = errors[0] - discount * trace * second
    found = advantages(rewards, values, movers, [False] * 3, discount, trace)
    assert found == pytest.approx([first, second, third], abs=1e-5)


def test_nothing_leaks_from_the_next_game() -> None:
    found = advantages([1, 0, 0], [0, 0.5, 0.5, 0.5], [0, 0, 1, 0], [True, False, False], 1.0, 0.95)
    assert found[0] == 1.0


def test_perfect_values_leave_no_advantage() -> None:
    # Colour 0 wins in the end: +1 for every decision of 0, -1 for those of 1.
    movers = [0, 1, 1, 0, 0, 1, 0]
    values = [1.0 if mover == 0 else -1.0 for mover in movers]
    assert advantages([0, 0, 0, 0, 0, -1], values, movers, [False] * 5 + [True], 1.0, 0.7) == [0] * 6


def test_reward_streams_do_not_mix() -> None:
    rng = np.random.default_rng(0)
    rewards, values = rng.normal(size=(5, 4, 2)).astype(np.float32), rng.normal(size=(6, 4, 2)).astype(np.float32)
    movers, done = rng.integers(0, 2, (6, 4)).astype(np.int8), rng.random((5, 4)) < 0.2
    both = ppo.generalised_advantages(rewards, values, movers, done, 0.99, 0.9)
    for stream in range(2):
        one = slice(stream, stream + 1)
        alone = ppo.generalised_advantages(rewards[..., one], values[..., one], movers, done, 0.99, 0.9)
        np.testing.assert_array_equal(both[..., one], alone)


# -- loss ------------------------------------------------------------------------------------------------------------


def batch_of(network: PolicyValueNetwork, advantages: list[float], shift: float = 0.0) -> ppo.Batch:
    generator = torch.Generator().manual_seed(1)
    count = len(advantages)
    features = torch.randn(count, network.record.inputs, generator=generator)
    legal = torch.ones(count, network.record.actions[0], dtype=torch.bool)
    legal[:, -1] = False
    with torch.no_grad():
        logits, values = network(features)
    log_probabilities = ppo.masked_log_probabilities(logits, legal)[:, 0] + shift
    return ppo.Batch(
        features,
        legal,
        torch.zeros(count, dtype=torch.int64),
        log_probabilities,
        torch.tensor(advantages),
        values + 2.0,
    )


@pytest.fixture
def network() -> PolicyValueNetwork:
    network = PolicyValueNetwork(NetworkRecord(inputs=5, actions=(4,), width=8, blocks=1))
    network.initialise(torch.Generator().manual_seed(0))
    return network


def test_loss_before_the_first_step_has_a_ratio_of_one(network: PolicyValueNetwork) -> None:
    loss, parts = ppo.ppo_loss(
        network, batch_of(network, [1.0, -3.0]), PPOConfig(value_weight=0.5, margin_weight=0.25), 0.1
    )
    assert parts["loss/policy"] == pytest.approx(1.0)
    assert parts["loss/value"] == pytest.approx(4.0)
    assert parts["loss/margin"] == pytest.approx(4.0)
    assert parts["policy/kl"] == pytest.approx(0.0, abs=1e-6)
    assert 0.0 < float(parts["policy/entropy"]) <= np.log(3) + 1e-6
    assert loss.item() == pytest.approx(1.0 - 0.1 * float(parts["policy/entropy"]) + 0.5 * 4.0 + 0.25 * 4.0)


@pytest.mark.parametrize(("advantage", "moves"), [(1.0, False), (-1.0, True)])
def test_ratios_above_the_clip_range_are_not_rewarded_further(
    network: PolicyValueNetwork, advantage: float, moves: bool
) -> None:
    # The probability is e times what it was: rewarded if good no further, punished if bad.
    batch = batch_of(network, [advantage], shift=-1.0)
    loss, parts = ppo.ppo_loss(network, batch, PPOConfig(value_weight=0.0, margin_weight=0.0), 0.0)
    assert parts["policy/clipped"] == 1.0
    loss.backward()
    moved = any(bool(p.grad.abs().sum() > 0) for p in network.policy.parameters() if p.grad is not None)
    assert moved is moves


def test_illegal_actions_get_no_gradient(network: PolicyValueNetwork) -> None:
    loss, _ = ppo.ppo_loss(network, batch_of(network, [1.0, 2.0]), PPOConfig(), 0.05)
    loss.backward()
    assert network.policy.bias.grad is not None
    assert network.policy.bias.grad[-1] == 0.0
    assert network.policy.bias.grad[0] != 0.0


def test_update_raises_the_probability_of_good_actions(network: PolicyValueNetwork) -> None:
    batch = batch_of(network, [2.0] * 8)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
    metrics = ppo.update(
        network, optimiser, batch, PPOConfig(minibatch_size=4, epochs=3), 0.0, np.random.default_rng(0)
    )
    with torch.no_grad():
        after = ppo.masked_log_probabilities(network(batch.features)[0], batch.legal)[:, 0]
    assert (after > batch.log_probabilities).all()
    assert metrics["policy/epochs"] == 3


def test_target_kl_stops_early(network: PolicyValueNetwork) -> None:
    optimiser = torch.optim.Adam(network.parameters(), lr=0.05)
    config = PPOConfig(minibatch_size=4, epochs=9, target_kl=1e-4)
    assert (
        ppo.update(network, optimiser, batch_of(network, [2.0] * 8), config, 0.0, np.random.default_rng(0))[
            "policy/epochs"
        ]
        < 9
    )


def test_explained_variance() -> None:
    returns = np.array([1.0, -1.0, 0.5], np.float32)
    assert ppo.explained_variance(returns, returns) == 1.0
    assert ppo.explained_variance(np.zeros(3, np.float32), returns) == pytest.approx(0.0)
    assert ppo.explained_variance(returns, np.zeros(3, np.float32)) == 0.0


def test_budget_ends_at_whichever_limit_is_nearer() -> None:
    both = BudgetConfig(minutes=2.0, steps=100)
    assert budget_used(both, 50, 0.5) == 0.5
    assert budget_used(both, 10, 1.5) == 0.75
    assert budget_used(both, 1000, 0.0) == 1.0
    assert budget_used(BudgetConfig(steps=100), 50, 99.0) == 0.5


# -- whole runs ------------------------------------------------------------------------------------------------------


def weights(folder: pathlib.Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


def test_the_final_checkpoint_does_not_wait_for_curves(
    sprint: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(run_dir: pathlib.Path, title: str) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("training.run.draw_curves", fail)
    with pytest.raises(OSError, match="the disk is full"):
        train(small(sprint, 1), tmp_path, console=QUIET)
    assert read_checkpoint(tmp_path / "checkpoints" / "final").record.steps == ITERATION


def test_run_writes_everything(sprint: str, tmp_path: pathlib.Path) -> None:
    final = train(small(sprint, 3), tmp_path / "run", console=QUIET)
    assert final == tmp_path / "run" / "checkpoints" / "final"
    assert read_checkpoint(final).record.steps == 3 * ITERATION
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert {"metrics.jsonl", "curves.png", "tensorboard", "checkpoints", "resume"} <= names
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [line["iteration"] for line in lines] == [1, 2, 3]
    assert lines[0]["schedule/shaping"] == 0.5
    assert lines[-1]["progress"] == 1.0


def test_same_seed_gives_the_same_weights(sprint: str, tmp_path: pathlib.Path) -> None:
    first, second = (train(small(sprint, 4), tmp_path / name, console=QUIET) for name in "ab")
    other = train(small(sprint, 4, seed=4), tmp_path / "c", console=QUIET)
    assert weights(first) == weights(second)
    assert weights(first) != weights(other)


@pytest.mark.parametrize("game_name", ["sprint", "puluc", "petteia"])
def test_resumed_run_equals_an_undisturbed_one(
    game_name: str, sprint: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = small(game_name, 6)
    straight = train(config, tmp_path / "straight", console=QUIET)
    iterate, count = ppo.PPORun.iterate, [0]

    def stop_after_three(run: ppo.PPORun) -> dict[str, float]:
        metrics = iterate(run)
        count[0] += 1
        if count[0] == 3:
            signal.raise_signal(signal.SIGINT)
        return metrics

    with monkeypatch.context() as patch:
        patch.setattr(ppo.PPORun, "iterate", stop_after_three)
        stopped = train(config, tmp_path / "resumed", console=QUIET)
    assert stopped.name == f"step_{3 * ITERATION}"
    resumed = train(config, tmp_path / "resumed", resume=True, console=QUIET)
    assert weights(straight) == weights(resumed)
    steps = [json.loads(line)["steps"] for line in (tmp_path / "resumed" / "metrics.jsonl").read_text().splitlines()]
    assert steps == [ITERATION * i for i in range(1, 7)]


def test_killed_run_resumes_from_its_last_save(
    sprint: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    straight = train(small(sprint, 5), tmp_path / "straight", console=QUIET)
    iterate = ppo.PPORun.iterate

    def die(run: ppo.PPORun) -> dict[str, float]:
        if run.iteration == 2:
            run.save()
        if run.iteration == 4:
            raise MemoryError
        return iterate(run)

    with monkeypatch.context() as patch:
        patch.setattr(ppo.PPORun, "iterate", die)
        with pytest.raises(MemoryError):
            train(small(sprint, 5), tmp_path / "killed", console=QUIET)
    resumed = train(small(sprint, 5), tmp_path / "killed", resume=True, console=QUIET)
    assert weights(straight) == weights(resumed)
    lines = (tmp_path / "killed" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["iteration"] for line in lines] == [1, 2, 3, 4, 5]


def test_minutes_before_a_resume_count(sprint: str, tmp_path: pathlib.Path) -> None:
    train(small(sprint, 2), tmp_path / "run", console=QUIET)
    spent = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1])["minutes"]
    config = small(sprint, 2, budget={"minutes": spent / 2})
    train(config, tmp_path / "run", resume=True, console=QUIET)
    assert len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) == 2


def test_runs_are_not_overwritten_or_mixed(sprint: str, tmp_path: pathlib.Path) -> None:
    train(small(sprint, 1), tmp_path / "run", console=QUIET)
    with pytest.raises(ConfigError, match="already holds a run"):
        train(small(sprint, 1), tmp_path / "run", console=QUIET)
    with pytest.raises(ConfigError, match="seed = 3, not 4"):
        train(small(sprint, 2, seed=4), tmp_path / "run", resume=True, console=QUIET)
    with pytest.raises(CheckpointError, match="no saved state"):
        train(small(sprint, 1), tmp_path / "other", resume=True, console=QUIET)


def test_infinite_loss_stops_and_keeps_the_batch(
    sprint: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_batch = ppo.make_batch

    def spoilt(*arguments: object) -> object:
        batch, values = make_batch(*arguments)  # type: ignore[arg-type]
        batch.returns[5, 0] = float("nan")
        return batch, values

    monkeypatch.setattr(ppo, "make_batch", spoilt)
    with pytest.raises(TrainingError, match=r"iteration 1; the minibatch is in .*bad_batch.safetensors"):
        train(small(sprint, 2), tmp_path / "run", console=QUIET)
    saved = safetensors.numpy.load_file(tmp_path / "run" / "bad_batch.safetensors")
    assert np.isnan(saved["returns"]).any()


def test_stop_signal_prints_one_line(sprint: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGTERM])
    timer.start()
    folder = train(small(sprint, 10**6), tmp_path / "run")
    assert folder.name.startswith("step_")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("stopped after ")
    assert line.endswith("--resume goes on")
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_learns_to_run(sprint: str, tmp_path: pathlib.Path) -> None:
    from tradgames_env.agents.network import load_network_agent
    from tradgames_env.position import Position

    config = small(sprint, 60, ppo={"minibatch_size": 64, "learning_rate": 3e-3}, pool={"share": 0.0})
    agent = load_network_agent(train(config, tmp_path / "run", console=QUIET), device="cpu", lookahead=False)
    for text in ("0 0 o 1", "2 3 x 2", "4 4 o 1", "3 1 o 2"):
        (move,) = [move for move, share in agent.policy(Position.from_text(sprint, text)).items() if share > 0.5]
        assert move.startswith("run")
    assert agent.value(Position.from_text(sprint, "4 0 o 1")) > agent.value(Position.from_text(sprint, "0 4 o 1"))


@pytest.mark.parametrize("missing", ["network/stem.weight", "pool/opponents", "play/states"])
def test_a_saved_state_that_does_not_fit_is_refused_by_name(sprint: str, tmp_path: pathlib.Path, missing: str) -> None:
    config = small(sprint, 2)
    train(config, tmp_path, console=QUIET)
    saved = Checkpoints(tmp_path / RESUME_FOLDER)
    iteration, (arrays, record) = saved.load(read_state, print)
    del arrays[missing]
    shutil.rmtree(tmp_path / RESUME_FOLDER)
    saved.save(iteration, state_files(arrays, record))
    with pytest.raises(CheckpointError, match="its content does not fit the run"):
        train(config, tmp_path, resume=True, console=QUIET)
