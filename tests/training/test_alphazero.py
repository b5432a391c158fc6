import functools
import hashlib
import pathlib

import numpy as np
import pytest
import torch
from rich.console import Console

import tradgames_env as tg
from tests.training.pure_tasks import play_shard_after_a_death
from tradgames_env.agents.network import NetworkEvaluator
from tradgames_env.rules.contract import MARGIN, MOVER, OUTCOME, PAYOFF, RUNNING
from training import alphazero, selfplay
from training.alphazero import AlphaZeroRun
from training.config import AlphaZeroTrainConfig, ConfigError, parse_config
from training.learner import Learner
from training.metrics import read_metrics
from training.run import RESUME_FOLDER, NonFiniteLossError, TrainingError
from training.selfplay import ShardTask, play_shard
from training.train import train

QUIET = Console(quiet=True)
SMALL = {
    "method": "alphazero",
    "network": {"width": 16, "blocks": 1},
    "search": {"simulations": 6, "fast_simulations": 2, "full_share": 0.5},
    "selfplay": {"shards": 2, "games": 12, "decisions": 8, "horizon": 6, "engine": "serial", "early_plies": 4},
    "replay": {"first_window": 200, "window": 400},
    "learner": {"batch_size": 64},
    "pool": {"share": 0.5, "every": 1, "capacity": 2},
    "shaping": {"weight": 0.5},
    "threads": 1,
    "save_minutes": 1e-6,
    "seed": 3,
}
ITERATION = 2 * 12 * 8


def small(
    iterations: int, game: str = "petteia", improver: str = "gumbel", **sections: dict[str, object]
) -> AlphaZeroTrainConfig:
    data: dict[str, object] = {"game": {"name": game, "variant": "mini"}, "budget": {"steps": iterations * ITERATION}}
    data |= {name: {**section} if isinstance(section, dict) else section for name, section in SMALL.items()}
    for name, section in {"search": {"improver": improver}, **sections}.items():
        data[name] = {**data.get(name, {}), **section}  # type: ignore[dict-item]
    if improver == "expectimax":
        data["pool"] = {"share": 0.0}
    config = parse_config(data, "test")
    assert isinstance(config, AlphaZeroTrainConfig)
    return config


def digest(run: pathlib.Path) -> str:
    """Of all that training made: weights, samples and the state for a resume."""
    paths = [run / "checkpoints" / "final" / "model.safetensors", *sorted((run / "replay").iterdir())]
    return hashlib.sha256(b"".join(path.name.encode() + path.read_bytes() for path in paths)).hexdigest()


# -- a run ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "improver"), [("petteia", "gumbel"), ("puluc", "expectimax"), ("yote", "gumbel"), ("yut_nori", "gumbel")]
)
def test_a_run_repeats_and_its_policy_plays(name: str, improver: str, tmp_path: pathlib.Path) -> None:
    config = small(3, name, improver)
    first, second = (train(config, tmp_path / run, console=QUIET) for run in "ab")
    assert digest(tmp_path / "a") == digest(tmp_path / "b")
    other = train(config.model_copy(update={"seed": 4}), tmp_path / "c", console=QUIET)
    assert digest(tmp_path / "c") != digest(tmp_path / "a")
    assert (first.name, second.name, other.name) == ("final",) * 3
    position = tg.Position(name, variant="mini", seed=1)
    assert tg.load_agent(first).act(position) in position.legal_moves()
    assert "search and self-play" in (first / "README.md").read_text()


def test_processes_change_nothing(tmp_path: pathlib.Path) -> None:
    train(small(3, selfplay={"overlap": True}), tmp_path / "serial", console=QUIET)
    changes = {"engine": "process", "workers": 2, "overlap": True}
    train(small(3, selfplay=changes), tmp_path / "process", console=QUIET)
    assert digest(tmp_path / "serial") == digest(tmp_path / "process")


def test_a_killed_worker_changes_nothing(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    train(small(3), tmp_path / "serial", console=QUIET)
    dying = functools.partial(play_shard_after_a_death, str(tmp_path / "died"))
    monkeypatch.setattr(alphazero, "play_shard", dying)
    train(small(3, selfplay={"engine": "process", "workers": 2}), tmp_path / "process")
    assert "a worker process died; " in capsys.readouterr().err
    assert digest(tmp_path / "serial") == digest(tmp_path / "process")


@pytest.mark.parametrize("before", ["iterate", "save"])
def test_a_killed_run_goes_on_as_if_it_had_not_been(
    before: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(small(5), tmp_path / "straight", console=QUIET)
    whole = getattr(AlphaZeroRun, before)

    def die(run: AlphaZeroRun) -> object:
        # In the second case samples of an iteration are there whose state was never saved.
        if run.iteration == 3:
            raise KeyboardInterrupt
        return whole(run)

    with monkeypatch.context() as patch:
        patch.setattr(AlphaZeroRun, before, die)
        with pytest.raises(KeyboardInterrupt):
            train(small(5), tmp_path / "killed", console=QUIET)
    train(small(5), tmp_path / "killed", resume=True, console=QUIET)
    assert digest(tmp_path / "killed") == digest(tmp_path / "straight")
    assert [line["iteration"] for line in read_metrics(tmp_path / "killed" / "metrics.jsonl")] == [1, 2, 3, 4, 5]


def test_another_configuration_is_refused(tmp_path: pathlib.Path) -> None:
    train(small(1), tmp_path / "run", console=QUIET)
    with pytest.raises(ConfigError, match="it already holds a run"):
        train(small(1), tmp_path / "run", console=QUIET)
    with pytest.raises(ConfigError, match="was started with search = "):
        train(small(2, search={"simulations": 9}), tmp_path / "run", resume=True, console=QUIET)
    train(small(2, selfplay={"engine": "process", "workers": 1}), tmp_path / "run", resume=True, console=QUIET)
    ppo = parse_config({"game": {"name": "petteia", "variant": "mini"}, "budget": {"steps": 10}}, "test")
    with pytest.raises(ConfigError, match="was started with"):
        train(ppo, tmp_path / "run", resume=True, console=QUIET)


def test_a_loss_that_is_not_a_number_stops_the_run(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = Learner._batch

    def spoiled(learner: Learner, game: int, samples: selfplay.Arrays) -> object:
        samples["results"][0] = np.nan
        return batch(learner, game, samples)

    monkeypatch.setattr(Learner, "_batch", spoiled)
    with pytest.raises(TrainingError, match=r"the loss became nan in iteration 1; .*bad_batch.safetensors"):
        train(small(2), tmp_path / "run", console=QUIET)
    assert (tmp_path / "run" / "bad_batch.safetensors").is_file()
    assert (tmp_path / "run" / RESUME_FOLDER).is_dir()


def test_a_gradient_that_is_not_a_number_stops_the_run_before_the_step(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoil(parameters: list[torch.nn.Parameter], length: float) -> torch.Tensor:
        return torch.tensor(torch.inf)

    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", spoil)
    config = small(1)
    run = AlphaZeroRun(config, tmp_path, print)
    run._keep([play_shard(task) for task in run._tasks(0.0)])
    before = {name: array.copy() for name, array in run.learner.state().items()}
    with pytest.raises(NonFiniteLossError, match="the gradient became inf"):
        run._learn(0.0)
    run.close()
    assert all(np.array_equal(array, before[name]) for name, array in run.learner.state().items())


def test_the_window_grows_and_files_out_of_reach_go(tmp_path: pathlib.Path) -> None:
    train(small(7), tmp_path / "run", console=QUIET)
    windows = [line["data/window"] for line in read_metrics(tmp_path / "run" / "metrics.jsonl")]
    assert windows == sorted(windows)
    files = sorted(path.name for path in (tmp_path / "run" / "replay").iterdir())
    assert files[-1] == "it_000007.safetensors"
    assert len(files) < 7


# -- a shard -------------------------------------------------------------------------------------------------------


def shard_task(config: AlphaZeroTrainConfig, tmp_path: pathlib.Path, **changes: object) -> ShardTask:
    run = AlphaZeroRun(config, tmp_path, print)
    task = run._tasks(0.0)[0]
    run.close()
    fields = {name: getattr(task, name) for name in vars(task)}
    return ShardTask(**{**fields, **changes})


def test_a_shard_is_a_function_of_its_task(tmp_path: pathlib.Path) -> None:
    task = shard_task(small(1), tmp_path)
    one, two = play_shard(task), play_shard(task)
    for first, second in ((one.samples, two.samples), (one.state, two.state)):
        assert all(np.array_equal(first[name], second[name]) for name in first)
    assert one.counts == two.counts


def test_samples_are_given_once_and_none_is_lost(tmp_path: pathlib.Path) -> None:
    config = small(1, pool={"share": 0.0})
    task, given, results = shard_task(config, tmp_path), 0, []
    for iteration in range(6):
        result = play_shard(task)
        given += len(result.samples["results"])
        results.append(result)
        task = shard_task(config, tmp_path, state=result.state, seed=(3, iteration + 1, 0))
    owed = int(results[-1].state["window/owed"].sum())
    assert given + owed == 6 * 12 * 8
    # Games are carried over: more of them end than began anew in the last iteration.
    assert sum(result.counts.games for result in results) > 0


def test_policies_are_of_legal_actions_and_sum_to_one(tmp_path: pathlib.Path) -> None:
    samples = play_shard(shard_task(small(1, selfplay={"horizon": 0}), tmp_path)).samples
    taught = samples["taught"]
    assert taught.any()
    assert samples["probabilities"][taught].astype(np.float32).sum(axis=1) == pytest.approx(1.0, abs=2e-3)
    assert (samples["actions"][~taught] == -1).all()
    assert np.abs(samples["results"]).max() <= 1


def test_past_policies_keep_their_games_and_are_not_learned_from(tmp_path: pathlib.Path) -> None:
    config = small(1, selfplay={"horizon": 0, "decisions": 2})
    weights = shard_task(config, tmp_path).weights
    task = shard_task(config, tmp_path, policies={5: weights}, drawn=(5,), pool_share=1.0)
    first = play_shard(task)
    assert (first.state["opponents"] == 5).all()
    assert set(first.state["colours"].tolist()) == {0, 1}
    # Movers alternate here, so half of the decisions are the learner's.
    assert len(first.samples["results"]) == 12
    later = shard_task(config, tmp_path, policies={5: weights}, pool_share=1.0, state=first.state, seed=(3, 1, 0))
    assert (play_shard(later).state["opponents"] == 5).all()


def test_games_begin_with_few_pieces_where_asked(tmp_path: pathlib.Path) -> None:
    config = small(1, selfplay={"decisions": 1, "sparse_pieces": 2})
    state = play_shard(shard_task(config, tmp_path, sparse_share=1.0)).state
    (ruleset,) = config.rulesets()
    pieces = ["".join(ruleset.rules.site_pieces(ruleset.options, row)) for row in state["states"]]
    assert max(len(text) for text in pieces) <= 4


def test_games_that_begin_with_few_pieces_are_broken_off_where_asked(tmp_path: pathlib.Path) -> None:
    config = small(1, selfplay={"decisions": 5, "horizon": 8, "sparse_pieces": 2, "sparse_decisions": 3})
    broken = play_shard(shard_task(config, tmp_path, sparse_share=1.0))
    window = {name: broken.state[f"window/{name}"][3:] for name in ("ended", "careless", "values", "finals")}
    assert window["ended"][2:].any(axis=0).all()
    rows, games = np.nonzero(window["ended"] & window["careless"])
    assert set(rows) <= {2, 3, 4}
    assert (window["finals"][rows, games] == 0).all()
    assert (broken.state["lengths"] < 3).all()
    later = shard_task(config, tmp_path, sparse_share=1.0, state=broken.state, seed=(3, 1, 0))
    assert (play_shard(later).state["lengths"] < 3).all()
    assert (play_shard(shard_task(config, tmp_path)).state["lengths"] > 3).any()


def test_games_that_cannot_begin_with_few_pieces_are_not_broken_off(tmp_path: pathlib.Path) -> None:
    config = small(1, "puluc", selfplay={"decisions": 5, "sparse_decisions": 3})
    state = play_shard(shard_task(config, tmp_path, sparse_share=1.0)).state
    assert (state["limits"] > 10**9).all()
    assert (state["lengths"] > 3).any()


def test_first_games_are_in_different_phases_where_asked(tmp_path: pathlib.Path) -> None:
    pieces = {}
    for spread in (0, 12):
        config = small(1, "yote", selfplay={"decisions": 1, "opening_share": 0.0, "spread": spread})
        states = play_shard(shard_task(config, tmp_path)).state["states"]
        (ruleset,) = config.rulesets()
        pieces[spread] = {len("".join(ruleset.rules.site_pieces(ruleset.options, row))) for row in states}
    assert pieces[0] == {1}
    assert len(pieces[12]) > 2


@pytest.mark.parametrize("name", ["yote", "petteia"])
def test_samples_tell_how_their_game_ended_as_the_mover_sees_it(
    name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In Yote, whoever captures moves again: neighbours may have the same mover."""
    seen: list[np.ndarray] = []
    ends: list[tuple[int, int, np.ndarray]] = []
    note, end = selfplay._Shard._note, selfplay._Shard._end

    def noting(self: selfplay._Shard, at: int, *args: object) -> None:
        seen.append(self.states.copy())
        note(self, at, *args)  # type: ignore[arg-type]

    def ending(self: selfplay._Shard, at: int) -> None:
        over = np.flatnonzero(self.states[:, OUTCOME] != RUNNING)
        ends.extend((at, int(game), self.states[game].copy()) for game in over)
        end(self, at)

    monkeypatch.setattr(selfplay._Shard, "_note", noting)
    monkeypatch.setattr(selfplay._Shard, "_end", ending)
    config = small(
        1, name, pool={"share": 0.0}, shaping={"weight": 0.0},
        selfplay={"decisions": 60, "horizon": 0, "trace": 1.0, "opening_share": 0.0},
    )  # fmt: skip
    samples = play_shard(shard_task(config, tmp_path)).samples
    results, draws = (samples[name].reshape(60, 12) for name in ("results", "draws"))
    margins = samples["margins"].reshape(60, 12)
    (ruleset,) = config.rulesets()
    scale = ruleset.rules.margin_scale(ruleset.options)
    begins = np.zeros(12, int)
    for at, game, final in ends:
        states = np.stack(seen)[begins[game] : at + 1, game]
        signs = 1 - 2 * states[:, MOVER]
        assert results[begins[game] : at + 1, game] == pytest.approx(signs * final[PAYOFF])
        assert draws[begins[game] : at + 1, game] == pytest.approx(float(final[PAYOFF] == 0))
        changes = signs * (final[MARGIN] - states[:, MARGIN]) / scale
        assert margins[begins[game] : at + 1, game] == pytest.approx(changes, abs=1e-6)
        begins[game] = at + 1
    movers = np.stack(seen)[:, :, MOVER]
    assert len(ends) > 4
    assert (movers[1:] == movers[:-1]).any()


def test_lists_of_actions_widen_when_more_are_legal(tmp_path: pathlib.Path) -> None:
    config = small(1, game="yote", selfplay={"decisions": 30, "horizon": 4})
    result = play_shard(shard_task(config, tmp_path))
    width = result.state["window/actions"].shape[2]
    again = play_shard(shard_task(config, tmp_path, state=result.state, seed=(3, 1, 0)))
    assert again.state["window/actions"].shape[2] >= width


# -- learning ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["petteia", "yote"])
def test_reflected_samples_are_those_of_the_reflected_game(name: str, tmp_path: pathlib.Path) -> None:
    run = AlphaZeroRun(small(1, name), tmp_path, print)
    task = run._tasks(0.0)[0]
    run.close()
    (ruleset,) = run.config.rulesets()
    mirrored = ruleset.rules.mirror(ruleset.options)
    assert mirrored is not None
    evaluator = NetworkEvaluator(ruleset, run.learner.network)
    one, two = (tg.Position(name, variant="mini") for _ in range(2))
    rng = np.random.default_rng(1)
    for _ in range(12):
        features = [evaluator.features(*(rows[None] for rows in position.rows)) for position in (one, two)]
        actions = one.legal_actions()
        samples = {"features": features[0].astype(np.float16), "actions": np.array([[*actions, -1]], np.int16)}
        reflection = run.learner.subjects[0].reflection
        assert reflection is not None
        reflection.apply(samples, np.array([0]))
        assert np.array_equal(samples["features"], features[1].astype(np.float16))
        assert sorted(samples["actions"][0, :-1]) == sorted(two.legal_actions())
        assert samples["actions"][0, -1] == -1
        action = int(rng.choice(actions))
        one.push(action)
        two.push(int(mirrored[1][action]))
    assert task.margin_weight == 0.5


def test_turned_samples_are_those_of_the_turned_game(tmp_path: pathlib.Path) -> None:
    run = AlphaZeroRun(small(1, "yote", learner={"turns": True}), tmp_path, print)
    run.close()
    (ruleset,) = run.config.rulesets()
    turned, turn = ruleset.rules.turn(ruleset.options), run.learner.subjects[0].turn
    assert turned is not None
    assert turn is not None
    evaluator = NetworkEvaluator(ruleset, run.learner.network)
    one, two = (tg.Position("yote", variant="mini") for _ in range(2))
    rng = np.random.default_rng(1)
    for _ in range(12):
        features = [evaluator.features(*(rows[None] for rows in position.rows)) for position in (one, two)]
        actions = one.legal_actions()
        samples = {"features": features[0].astype(np.float16), "actions": np.array([actions], np.int16)}
        turn.apply(samples, np.array([0]))
        assert np.array_equal(samples["features"], features[1].astype(np.float16))
        assert sorted(samples["actions"][0]) == sorted(two.legal_actions())
        action = int(rng.choice(actions))
        one.push(action)
        two.push(int(turned[1][action]))


def test_samples_are_shown_in_all_eight_ways(tmp_path: pathlib.Path) -> None:
    run = AlphaZeroRun(small(1, "yote", learner={"turns": True}), tmp_path, print)
    run.close()
    position = tg.Position("yote", variant="mini")
    position.push("+A2")
    position.push("+A1")
    features = NetworkEvaluator(run.config.rulesets()[0], run.learner.network).features(
        *(rows[None] for rows in position.rows)
    )
    samples = {
        "features": np.repeat(features, 200, axis=0),
        "actions": np.tile(np.array(position.legal_actions(), np.int16), (200, 1)),
        "results": np.zeros(200, np.float32),
    }
    run.learner.subjects[0].vary(samples, np.random.default_rng(1))
    shown, counts = np.unique(samples["features"], axis=0, return_counts=True)
    assert len(shown) == 8
    assert counts.min() > 10


def test_learning_fits_samples(tmp_path: pathlib.Path) -> None:
    config = small(1, learner={"learning_rate": 0.01, "mirror": False})
    run = AlphaZeroRun(config, tmp_path, print)
    run._keep([play_shard(task) for task in run._tasks(0.0)])
    run.close()
    losses = [run._learn(0.0) for _ in range(20)]
    assert losses[-1]["policy/kl"] < 0.8 * losses[0]["policy/kl"]
    assert losses[-1]["loss/value"] < losses[0]["loss/value"]
    average = run.learner.averaged()
    assert all(torch.isfinite(torch.from_numpy(array)).all() for array in average.values())
