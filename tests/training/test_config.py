import pathlib

import pydantic
import pytest

from tradgames_env.agents.searching import MOST_PLIES
from tradgames_env.search.gumbel import MOST_SIMULATIONS
from training.config import ConfigError, PlayConfig, TrainConfig, load_config, parse_config

MINIMAL = '[game]\nname = "petteia"\n[budget]\nsteps = 100\n'
CONFIGS = pathlib.Path(__file__).parents[2] / "configs"


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    file = tmp_path / "run.toml"
    file.write_text(MINIMAL)
    return file


def test_defaults_fill_the_rest(path: pathlib.Path) -> None:
    config = load_config(path)
    assert config.game.variant == "box"
    assert config.ppo.gamma == 1.0
    assert config.budget.minutes is None


def test_records_are_frozen(path: pathlib.Path) -> None:
    with pytest.raises(pydantic.ValidationError):
        load_config(path).ppo.clip_range = 0.5  # type: ignore[misc]


@pytest.mark.parametrize("name", sorted(file.name for file in CONFIGS.glob("*.toml")))
def test_shipped_configurations_load_and_survive_json(name: str) -> None:
    config = load_config(CONFIGS / name)
    assert parse_config(config.model_dump(mode="json"), "json") == config
    assert all(ruleset.num_actions > 0 for ruleset in config.rulesets())


def test_there_is_a_configuration_for_each_game(game: str) -> None:
    assert load_config(CONFIGS / f"{game}.toml").game.name == game


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[ppo]\nepoch = 3", "unknown key 'ppo.epoch'; did you mean 'epochs'? known: epochs, minibatch_size"),
        ("[pp]\nepochs = 3", "unknown key 'pp'; did you mean 'ppo'?"),
        ('[ppo]\nepochs = "3"', "ppo.epochs: input should be a valid integer, not '3'"),
        ("[ppo]\nepochs = 2.0", "ppo.epochs: input should be a valid integer, not 2.0"),
        ("[ppo]\nepochs = 0", "ppo.epochs: input should be greater than 0, not 0"),
        ("[ppo]\nlearning_rate = nan", "ppo.learning_rate: input should be"),
        ("[shaping]\nuntil = 1.5", "shaping.until: input should be less than or equal to 1, not 1.5"),
        ("seed = true", "seed: input should be a valid integer, not True"),
        ("method = [1]", "method: input should be 'ppo' or 'alphabeta' or 'alphazero', not [1]"),
        ("[method]\nname = 3", "method: input should be 'ppo' or 'alphabeta' or 'alphazero', not {'name': 3}"),
        ("[rollout]\nopening_plies = 99999999999999999999", "rollout.opening_plies: input should be less than or"),
        ('progress = "yes"', "progress: input should be 'auto' or 'off', not 'yes'"),
    ],
)
def test_mistakes_name_file_and_key(path: pathlib.Path, text: str, message: str) -> None:
    path.write_text(f"{text}\n{MINIMAL}" if "=" in text.splitlines()[0] else f"{MINIMAL}{text}\n")
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("games", [f"'{'x' * 9999}'", f"0x{'f' * 9999}"], ids=["text", "integer"])
def test_long_values_are_not_shown_whole(path: pathlib.Path, games: str) -> None:
    path.write_text(f"{MINIMAL}[rollout]\ngames = {games}\n")
    with pytest.raises(ConfigError, match=r"rollout\.games: input should be") as caught:
        load_config(path)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[game]\nname = "petteya"\n[budget]\nsteps = 1', "game: there is no game 'petteya'; known:"),
        ('[game]\nname = "petteia"\nvariant = "fr9"\n[budget]\nsteps = 1', "game: petteia has no variant 'fr9'"),
        ('[game]\nname = "petteia"\noptions = {rows = 99}\n[budget]\nsteps = 1', "game: option 'rows' must be"),
        ('[game]\nname = "petteia"\noptions = {rows = [6]}\n[budget]\nsteps = 1', "option 'rows' must be a number"),
        ('[game]\nname = "petteia"', "key 'budget' is missing"),
        ('[game]\nname = "petteia"\n[budget]', "budget: a limit is needed"),
        ("[game\n", "it cannot be read as TOML"),
    ],
)
def test_whole_files_that_are_wrong(path: pathlib.Path, text: str, message: str) -> None:
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert message in str(caught.value)


def test_missing_file_and_wrong_bytes(tmp_path: pathlib.Path, path: pathlib.Path) -> None:
    with pytest.raises(ConfigError, match="there is no such file"):
        load_config(tmp_path / "none.toml")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="cannot be read as TOML"):
        load_config(path)


def test_overrides_win_and_are_typed(path: pathlib.Path) -> None:
    overrides = {"ppo.epochs": "4", "game.variant": "fr6", "budget.minutes": "2", "budget.steps": None, "seed": 7}
    config = load_config(path, overrides)
    assert (config.ppo.epochs, config.game.variant, config.seed) == (4, "fr6", 7)
    assert config.budget.minutes == 2.0
    assert config.budget.steps is None


def test_wrong_overrides(path: pathlib.Path) -> None:
    with pytest.raises(ConfigError, match=r"unknown key 'ppo.epoch'; did you mean 'epochs'"):
        load_config(path, {"ppo.epoch": "4"})
    with pytest.raises(ConfigError, match=r"'steps' is a value, not a section"):
        load_config(path, {"budget.steps.more": "4"})


def test_options_reach_the_game() -> None:
    data = {"game": {"name": "petteia", "options": {"quiet_limit": 60}}, "budget": {"steps": 1}}
    config: TrainConfig = parse_config(data, "test")
    assert config.game.ruleset().overrides == {"quiet_limit": 60}


def test_past_policies_do_not_play_by_expected_values() -> None:
    with pytest.raises(ConfigError, match=r"pool\.share of puluc_box must be 0, not 0\.2"):
        load_config(CONFIGS / "alphazero_puluc.toml", {"pool.share": 0.2})


def test_learning_begins_with_samples_that_a_window_holds() -> None:
    with pytest.raises(ConfigError, match="fewest is 300,001, and a window of 300,000 never holds so many"):
        load_config(CONFIGS / "alphazero_puluc.toml", {"replay.fewest": 300_001})


def test_only_searches_that_can_be_played_are_recommended() -> None:
    for name, most in (("simulations", MOST_SIMULATIONS), ("plies", MOST_PLIES)):
        assert getattr(PlayConfig(**{name: most}), name) == most
        with pytest.raises(pydantic.ValidationError):
            PlayConfig(**{name: most + 1})


def test_a_cluster_has_an_address_only_on_ray() -> None:
    given = {"selfplay.address": "10.0.0.1:6379"}
    config = load_config(CONFIGS / "alphazero_yote_box.toml", {**given, "selfplay.engine": "ray"})
    assert config.model_dump()["selfplay"]["address"] == "10.0.0.1:6379"
    with pytest.raises(ConfigError, match="engine must be 'ray', not 'process'"):
        load_config(CONFIGS / "alphazero_yote_box.toml", given)
