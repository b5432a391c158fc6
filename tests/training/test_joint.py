"""One network that learns several games."""

import json
import pathlib

import numpy as np
import pytest

import tradgames_env as tg
from tests.training.test_alphazero import QUIET, SMALL, digest
from tradgames_env.agents.checkpoint import read_checkpoint
from tradgames_env.agents.network import NetworkEvaluator
from training.alphazero import AlphaZeroRun
from training.config import AlphaZeroTrainConfig, ConfigError, parse_config
from training.match import play_match
from training.metrics import read_metrics
from training.selfplay import play_shard
from training.train import train

GAMES = [
    {"name": "petteia", "variant": "mini", "search": {"start_simulations": 4}},
    {
        "name": "puluc",
        "variant": "mini",
        "pool": {"share": 0.0},
        "search": {"improver": "expectimax"},
        "selfplay": {"shards": 1},
    },
    {"name": "yote", "variant": "mini", "shaping": {"weight": 0.1}},
]
ITERATION = (2 + 1 + 2) * 12 * 8


def joint(iterations: int = 1, games: object = GAMES, **sections: object) -> AlphaZeroTrainConfig:
    data: dict[str, object] = {**SMALL, "games": games, "budget": {"steps": iterations * ITERATION}}
    for name, section in sections.items():
        data[name] = {**data.get(name, {}), **section}  # type: ignore[dict-item]
    config = parse_config(data, "test")
    assert isinstance(config, AlphaZeroTrainConfig)
    return config


# -- its configuration -----------------------------------------------------------------------------------------------


def test_a_game_has_the_settings_of_the_run_where_it_has_none_of_its_own() -> None:
    config = joint()
    petteia, puluc, yote = config.learned()
    assert petteia.search == config.search.model_copy(update={"start_simulations": 4})
    assert (puluc.search.improver, puluc.search.simulations, puluc.pool.capacity) == ("expectimax", 6, 2)
    assert (yote.shaping.weight, petteia.shaping.weight) == (0.1, 0.5)
    assert parse_config(config.model_dump(mode="json"), "json") == config


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"game": {"name": "petteia"}}, "test: give either game, for one game, or games, for several"),
        ({"games": []}, "test: give either game, for one game, or games, for several"),
        ({"games": 3}, "test: games: input should be"),
        ({"games": [3]}, "test: games.0: input should be"),
        ({"games": [{"name": "petteya"}]}, "test: games.0: there is no game 'petteya'"),
        ({"games": [{"name": "petteia", "varant": "box"}]}, "unknown key 'games.0.varant'; did you mean 'variant'?"),
        ({"games": [{"name": "yote", "search": {"simulatons": 3}}]}, "did you mean 'simulations'?"),
        ({"games": [{"name": "yote", "search": 3}]}, "test: games.0.search: input should be"),
        ({"games": [{"name": "yote"}, {"name": "yote"}]}, "two of the games have the same name and variant"),
        ({"games": [{"name": "yote", "selfplay": {"workers": 3}}]}, "selfplay.workers of yote_box is that of all"),
        ({"learner": {"batch_size": 2}}, "learner.batch_size is smaller than the number of games"),
    ],
)
def test_mistakes_are_named(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config({**SMALL, "games": GAMES, "budget": {"steps": 1}, **changes}, "test")
    assert message in str(caught.value)


def test_what_is_wrong_in_a_section_of_the_run_is_said_once() -> None:
    with pytest.raises(ConfigError) as caught:
        joint(search={"simulatons": 3})
    assert str(caught.value).count("simulatons") == 1


# -- a run -----------------------------------------------------------------------------------------------------------


def files(run: pathlib.Path) -> dict[str, bytes]:
    paths = [run / "checkpoints" / "final" / "model.safetensors", *(run / "replay").rglob("*.safetensors")]
    return {str(path.relative_to(run)): path.read_bytes() for path in paths}


@pytest.mark.parametrize("trunk", ["mlp", "conv"])
def test_a_run_repeats_and_its_checkpoint_plays_every_game(trunk: str, tmp_path: pathlib.Path) -> None:
    config = joint(2, network={"trunk": trunk}, play={"lookahead": False, "simulations": 4, "plies": 1})
    folder = train(config, tmp_path / "serial", console=QUIET)
    train(config, tmp_path / "again", console=QUIET)
    assert files(tmp_path / "serial") == files(tmp_path / "again")
    assert len(files(tmp_path / "serial")) > 3
    for spec in (folder, f"{folder}:0"):
        agent = tg.load_agent(spec)
        for game in GAMES:
            position = tg.Position(str(game["name"]), variant="mini", seed=1)
            assert agent.act(position) in position.legal_moves()
        with pytest.raises(ValueError, match="was trained for petteia/mini and puluc/mini and yote/mini"):
            agent.act(tg.Position("yut_nori", seed=1))
    assert [game.game for game in read_checkpoint(folder).record.games] == ["petteia", "puluc", "yote"]


def test_processes_change_nothing(tmp_path: pathlib.Path) -> None:
    train(joint(2), tmp_path / "serial", console=QUIET)
    train(joint(2, selfplay={"engine": "process", "workers": 2}), tmp_path / "process", console=QUIET)
    assert files(tmp_path / "serial") == files(tmp_path / "process")


def test_metrics_are_those_of_each_game_and_their_means(tmp_path: pathlib.Path) -> None:
    train(joint(4), tmp_path / "run", console=QUIET)
    line = read_metrics(tmp_path / "run" / "metrics.jsonl")[2]
    assert line["steps"] == 3 * ITERATION
    each = [line[f"{game['name']}_mini/loss/value"] for game in GAMES]
    assert len(set(each)) == 3
    assert line["loss/value"] == pytest.approx(sum(each) / 3)
    assert line["petteia_mini/schedule/shaping"] > line["yote_mini/schedule/shaping"] >= 0.0


@pytest.mark.parametrize("before", ["iterate", "save"])
def test_a_killed_run_goes_on_as_if_it_had_not_been(
    before: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(joint(4), tmp_path / "straight", console=QUIET)
    whole = getattr(AlphaZeroRun, before)

    def die(run: AlphaZeroRun) -> object:
        if run.iteration == 2:
            raise KeyboardInterrupt
        return whole(run)

    with monkeypatch.context() as patch:
        patch.setattr(AlphaZeroRun, before, die)
        with pytest.raises(KeyboardInterrupt):
            train(joint(4), tmp_path / "killed", console=QUIET)
    train(joint(4), tmp_path / "killed", resume=True, console=QUIET)
    assert files(tmp_path / "killed") == files(tmp_path / "straight")


def test_another_set_of_games_is_refused_and_other_workers_are_not(tmp_path: pathlib.Path) -> None:
    train(joint(1), tmp_path / "run", console=QUIET)
    with pytest.raises(ConfigError, match="was started with games = "):
        train(joint(2, games=GAMES[:2]), tmp_path / "run", resume=True, console=QUIET)
    train(joint(2, selfplay={"workers": 1}), tmp_path / "run", resume=True, console=QUIET)


def test_a_list_of_one_game_is_that_game(tmp_path: pathlib.Path) -> None:
    data = {**SMALL, "budget": {"steps": 2 * 2 * 12 * 8}}
    for name, which in {"game": {"game": {"name": "yote"}}, "games": {"games": [{"name": "yote"}]}}.items():
        train(parse_config(data | which, "test"), tmp_path / name, console=QUIET)
    assert digest(tmp_path / "game") == digest(tmp_path / "games")
    assert json.loads((tmp_path / "games" / "metrics.jsonl").read_text().splitlines()[0])["games/finished"] >= 0


# -- learning --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trunk", ["mlp", "conv"])
def test_samples_hold_what_the_network_reads(trunk: str, tmp_path: pathlib.Path) -> None:
    config = joint(network={"trunk": trunk})
    run = AlphaZeroRun(config, tmp_path, print)
    tasks, rulesets = run._tasks(0.0), config.rulesets()
    run.close()
    for game, ruleset in enumerate(rulesets):
        task = next(task for task in tasks if task.game == game)
        states = play_shard(task).state
        evaluator = NetworkEvaluator(ruleset, run.learner.network, games=rulesets)
        read = evaluator.features(states["states"], states["histories"])
        own = run.learner.subjects[game].reader.own(read)
        assert own.shape[1] == states["window/features"].shape[2] < read.shape[1]
        assert np.array_equal(run.learner.subjects[game].reader.spread(own), read)


def test_a_step_takes_equally_many_samples_of_each_game(tmp_path: pathlib.Path) -> None:
    run = AlphaZeroRun(joint(selfplay={"horizon": 0}), tmp_path, print)
    run._keep([play_shard(task) for task in run._tasks(0.0)])
    seen: list[list[int]] = []
    step = run.learner._step
    run.learner._step = lambda batches: seen.append([len(batch) for batch in batches]) or step(batches)
    run._learn(0.0)
    run.close()
    assert len(seen) == round(2.0 * ITERATION / 64)
    assert set(map(tuple, seen)) == {(21, 21, 21)}


def test_one_network_beats_random_in_its_games(tmp_path: pathlib.Path) -> None:
    plain = {"pool": {"share": 0.0}, "variant": "mini"}
    games = [{"name": "petteia", **plain}, {"name": "yote", **plain}, {**GAMES[1], "selfplay": {}}]
    config = joint(
        games=games,
        network={"width": 48},
        search={"simulations": 16, "fast_simulations": 6},
        selfplay={"games": 64, "decisions": 16, "horizon": 32},
        replay={"first_window": 8_000, "window": 20_000},
        learner={"batch_size": 384, "learning_rate": 3e-3},
        budget={"steps": 90_000},
        play={"plies": 1},
    )
    folder = train(config, tmp_path / "run", console=QUIET)
    petteia, yote, puluc = (play_match(folder, "random", game, games=200, seed=1).score for game in config.rulesets())
    # Luck decides most of Puluc.
    assert (petteia > 0.8, yote > 0.8, puluc > 0.5) == (True, True, True), (petteia, yote, puluc)
