import errno
import json
import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any

import pytest

import tradgames_env as tg
from tradgames_env.position import Position, perft
from training import match
from training import train as trainer
from training.cli import main
from training.perft import split_counts

Captured = pytest.CaptureFixture[str]


def mistake(capsys: Captured, *arguments: str) -> str:
    """The one line that a user's mistake gives."""
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("tradgames: ")
    assert err.count("\n") == 1
    return err


def said(capsys: Captured, *arguments: str) -> str:
    """Standard output of a command that succeeds."""
    code = main(arguments)
    out, err = capsys.readouterr()
    assert code == 0, err
    return out


# -- the frame ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command", ["train", "evaluate", "arena", "play", "export", "solve", "perft", "bench", "render"]
)
def test_help_shows_an_example_of_the_command(capsys: Captured, command: str) -> None:
    assert f"tradgames {command} " in said(capsys, command, "--help").partition("For example:")[2]


def test_help_lists_every_command(capsys: Captured) -> None:
    text = said(capsys, "--help")
    for command in ("train", "evaluate", "arena", "play", "export", "solve", "perft", "bench", "render"):
        assert f"• {command}" in text


def test_version(capsys: Captured) -> None:
    from tradgames_env.version import __version__

    assert said(capsys, "--version") == f"tradgames {__version__}\n"


def test_wrong_command_lines_are_told_in_one_line(capsys: Captured) -> None:
    assert "Expected one of" in mistake(capsys)
    assert "prft" in mistake(capsys, "prft")
    assert "--depth" in mistake(capsys, "perft", "petteia")
    assert "--depth" in mistake(capsys, "perft", "petteia", "--depth", "many")
    assert "--dept" in mistake(capsys, "perft", "petteia", "--dept", "3")


def test_it_runs_as_a_module_and_imports_no_torch() -> None:
    script = (
        "import sys; from training.cli import main\n"
        "code = main(['perft', 'petteia', '--depth', '2']) + main(['render', 'puluc'])\n"
        "print([name for name in ('torch', 'matplotlib', 'pydantic', 'PIL') if name in sys.modules], code)"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.endswith("[] 0\n")
    module = [sys.executable, "-m", "training.cli", "perft", "petteia", "--depth", "x"]
    result = subprocess.run(module, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)


# -- perft ---------------------------------------------------------------------------------------------------------


def test_perft_counts(capsys: Captured) -> None:
    assert "petteia/box, depth 3: 112,874 positions" in said(capsys, "perft", "petteia", "--depth", "3")


def test_perft_takes_variant_options_and_text(capsys: Captured) -> None:
    out = said(capsys, "perft", "puluc", "--depth", "1", "--text", "-/-/o/-/-/-/-/-/- 4 5 0 0 o 3")
    assert "depth 1: 2 positions" in out
    stuck = ("--text", "-/-/o/-/-/-/-/-/- 4 5 0 0 o 3", "--option", "pass_rule=stuck")
    assert "puluc/box+pass_rule=stuck, depth 1: 1 positions" in said(capsys, "perft", "puluc", "--depth", "1", *stuck)
    assert "petteia/fr6" in said(capsys, "perft", "petteia", "--depth", "1", "--variant", "fr6")


def test_perft_splits_by_first_moves(capsys: Captured) -> None:
    bonus = "x5/6/2ox2/6/5x o 5 4 0 - - -"
    out = said(capsys, "perft", "yote", "--depth", "2", "--split", "--text", bonus)
    assert "             2  C3 -> E3 x D3" in out


def test_perft_json(capsys: Captured) -> None:
    data = json.loads(said(capsys, "perft", "puluc", "--depth", "1", "--json", "--split", "--option", "stick_p=0.5"))
    assert (data["game"], data["depth"], data["count"]) == ("puluc", 1, 5)
    assert data["split"]["3: enter -> 3"] == 1


def test_split_sums_to_the_count(game: str, variant: str) -> None:
    for depth in (1, 2):
        position = Position(game, variant, chance="explicit")
        before = position.text()
        assert sum(split_counts(position, depth).values()) == perft(game, depth, variant)
        assert position.text() == before


def test_perft_mistakes(capsys: Captured) -> None:
    assert "there is no game 'chess'; known: petteia" in mistake(capsys, "perft", "chess", "--depth", "1")
    assert "depth must be an integer of at least 0" in mistake(capsys, "perft", "petteia", "--depth", "-1")
    assert "to be split" in mistake(capsys, "perft", "petteia", "--depth", "0", "--split")
    assert "no variant 'bx'; did you mean 'box'" in mistake(
        capsys, "perft", "petteia", "--depth", "1", "--variant", "bx"
    )
    assert "position" in mistake(capsys, "perft", "petteia", "--depth", "1", "--text", "nonsense")


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("quiet_limi=3", "no option 'quiet_limi'; did you mean 'quiet_limit'"),
        ("quiet_limit=soon", "'quiet_limit' takes an integer, not 'soon'"),
        ("forced_capture=perhaps", "'forced_capture' is true or false, not 'perhaps'"),
        ("quiet_limit", "--option takes NAME=VALUE, not 'quiet_limit'"),
        ("=3", "--option takes NAME=VALUE, not '=3'"),
        ("rows=1", "option 'rows'"),
    ],
)
def test_wrong_rule_options(capsys: Captured, option: str, message: str) -> None:
    assert message in mistake(capsys, "perft", "petteia", "--depth", "1", "--option", option)


# -- render --------------------------------------------------------------------------------------------------------


def test_render_prints_the_board(capsys: Captured) -> None:
    assert said(capsys, "render", "petteia") == f"{Position('petteia')}\n"


def test_render_plays_moves_first(capsys: Captured) -> None:
    text = "5xxx/8/8/8/8/1o6/o7/x6o o 0 -"
    arguments = ("render", "petteia", "--text", text, "--option", "corner_capture=true", "--moves")
    position = Position.from_text("petteia", text, corner_capture=True)
    for move in ("B3 -> B1 x A1", "H8 -> H7"):
        position.push(move)
    assert said(capsys, *arguments, "B3 -> B1 x A1, H8 -> H7") == f"{position}\n"
    assert said(capsys, *arguments, "b3b1;h8h7;") == f"{position}\n"


def test_render_leaves_a_throw_that_is_due(capsys: Captured) -> None:
    assert said(capsys, "render", "puluc") == f"{Position('puluc', chance='explicit')}\n"


@pytest.mark.parametrize(("suffix", "start"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("txt", b" ")])
def test_render_writes_pictures(capsys: Captured, tmp_path: pathlib.Path, suffix: str, start: bytes) -> None:
    path = tmp_path / f"board.{suffix}"
    assert said(capsys, "render", "petteia", "-o", str(path), "--size", "200") == ""
    assert path.read_bytes().startswith(start)


def test_render_mistakes(capsys: Captured, tmp_path: pathlib.Path) -> None:
    assert "must end in .svg" in mistake(capsys, "render", "petteia", "-o", str(tmp_path / "board.gif"))
    assert "No such file or directory" in mistake(capsys, "render", "petteia", "-o", str(tmp_path / "no" / "b.svg"))
    assert "not legal" in mistake(capsys, "render", "petteia", "--moves", "A1 -> A2, A1 -> A3")
    assert "size" in mistake(capsys, "render", "petteia", "-o", str(tmp_path / "b.svg"), "--size", "1")


# -- evaluate ------------------------------------------------------------------------------------------------------

GREEDY = ("evaluate", "greedy", "--against", "random", "--game", "puluc", "--variant", "mini", "--games", "6")


def test_evaluate_prints_tables(capsys: Captured) -> None:
    out = said(capsys, *GREEDY)
    assert "greedy – random" in out
    assert "random = 0" in out


def test_evaluate_writes_json_and_a_report(capsys: Captured, tmp_path: pathlib.Path) -> None:
    result, folder = tmp_path / "new" / "result.json", tmp_path / "report"
    said(capsys, *GREEDY, "--json", str(result), "--report", str(folder), "--seed", "3")
    data = json.loads(result.read_text())
    assert (data["game"], data["variant"], data["seed"], data["games"]) == ("puluc", "mini", 3, 6)
    assert data["provenance"]["command"].startswith("tradgames evaluate greedy --against random")
    assert data["matches"][0]["games"] == 6
    assert "greedy at Puluc" in (folder / "index.html").read_text()


def test_evaluate_json_to_standard_output_is_all_there_is(capsys: Captured) -> None:
    data = json.loads(said(capsys, *GREEDY, "--json", "-"))
    assert [rating["name"] for rating in data["ratings"]].count("greedy") == 1


def test_evaluate_is_repeatable(capsys: Captured) -> None:
    one, other = (json.loads(said(capsys, *GREEDY, "--json", "-"))["matches"][0]["pair_scores"] for _ in range(2))
    assert one == other


def test_evaluate_mistakes(capsys: Captured, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "file"
    file.touch()
    assert "which game?" in mistake(capsys, "evaluate", "greedy", "--against", "random")
    assert "did you mean 'greedy'" in mistake(capsys, "evaluate", "greddy", "--against", "random", "--game", "puluc")
    assert "even number" in mistake(capsys, *GREEDY[:-1], "7")
    assert "named twice" in mistake(capsys, *GREEDY[:3], "random", "random", *GREEDY[4:])
    assert "anchor 'mcts'" in mistake(capsys, *GREEDY, "--anchor", "mcts")
    assert "without dice" in mistake(capsys, "evaluate", "alphabeta:1", *GREEDY[2:])
    assert "does not exist" in mistake(capsys, "evaluate", "runs/none", *GREEDY[2:])
    assert "--record needs the folder of a checkpoint" in mistake(capsys, *GREEDY, "--record")
    assert "holds no metrics" in mistake(capsys, *GREEDY, "--run-dir", str(tmp_path))
    assert "File exists" in mistake(capsys, *GREEDY, "--report", str(file))
    assert "file" in mistake(capsys, *GREEDY, "--json", str(file / "result.json"))
    assert "--against" in mistake(capsys, "evaluate", "greedy", "--game", "puluc")


BY_THE_TABLE = (*GREEDY, "--regret", "--exploitability", "policy")


def test_evaluate_by_the_table_of_exact_values(capsys: Captured, tmp_path: pathlib.Path) -> None:
    text = said(capsys, *BY_THE_TABLE, "--json", str(tmp_path / "result.json"), "--report", str(tmp_path))
    assert "Regret of greedy, percentage points of winning probability" in text
    assert "Exploitability of greedy: 10.664 percentage points" in text
    data = json.loads((tmp_path / "result.json").read_text())
    assert data["regret"]["real_choices"]["decisions"] + data["regret"]["forced"] > 30
    assert data["exploitability"]["asked"] == "policy"
    page = (tmp_path / "index.html").read_text()
    assert "Against perfect play" in page
    for mistake in data["regret"]["worst"]:
        assert mistake["text"] in text
        assert f'alt="{mistake["text"]}"' in page
    plain = json.loads(said(capsys, *GREEDY, "--json", "-"))
    assert plain["regret"] is plain["exploitability"] is None


def test_evaluate_by_a_table_that_is_not_there(
    capsys: Captured, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRADGAMES_TABLES", str(tmp_path))
    large = ("evaluate", "greedy", "--against", "random", "--game", "puluc", "--option", "pieces=4")
    assert "make it with: tradgames solve puluc --variant box --option pieces=4" in mistake(capsys, *large, "--regret")
    assert "a smaller variant" in mistake(capsys, *large[:-2], "--exploitability", "moves")
    assert "petteia" in mistake(capsys, "evaluate", "greedy", "--against", "random", "--game", "petteia", "--regret")
    luck = mistake(capsys, *GREEDY, "--exploitability", "luck")
    assert "'luck'" in luck
    assert "'None'" not in luck


def test_evaluate_interrupted_while_the_agent_is_asked(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    said_before: list[str] = []

    def interrupt(*_: object, **__: object) -> None:
        said_before.append(capsys.readouterr().out)
        raise KeyboardInterrupt

    monkeypatch.setattr("training.exploitability.measure_exploitability", interrupt)
    assert main(BY_THE_TABLE) == 1
    assert "greedy – random" in said_before[0]
    out, err = capsys.readouterr()
    assert "greedy – random" not in out
    assert "Regret of greedy" in out
    assert "Exploitability" not in out
    assert "interrupted while the agent was asked" in err


def test_evaluate_interrupted_reports_what_was_played(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = iter(range(10_000))
    play_round = match._Match.play_round

    def interrupted(self: Any) -> bool:
        if next(rounds) == 60:
            raise KeyboardInterrupt
        return play_round(self)

    monkeypatch.setattr(match._Match, "play_round", interrupted)
    assert main([*GREEDY[:-1], "400", "--lockstep", "4"]) == 1
    out = capsys.readouterr().out
    assert "Stopped early" in out
    assert "greedy – random" in out


def test_an_agent_that_fails_is_a_failure(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    def cheat(self: Any, move: str, name: str) -> int:
        raise match.AgentError(f"{name} played an illegal move")

    monkeypatch.setattr(match._Game, "read", cheat)
    assert main(GREEDY) == 1
    assert capsys.readouterr().err == "tradgames: greedy played an illegal move\n"


ARENA = ("arena", "greedy", "random", "--game", "puluc", "--variant", "mini", "--games", "8")


def test_arena_plays_once_and_keeps_everything(capsys: Captured, tmp_path: pathlib.Path) -> None:
    arguments = (*ARENA, "--run-dir", str(tmp_path / "arena"), "--workers", "1", "--lockstep", "4")
    text = said(capsys, *arguments)
    assert "greedy – random" in text
    assert "Ladder, random = 0" in text
    pairs = (tmp_path / "arena" / "pairs.jsonl").read_bytes()
    assert len(pairs.splitlines()) == 1 + 4
    data = json.loads((tmp_path / "arena" / "result.json").read_text())
    assert (data["games"], data["lockstep"], data["stopped"], data["sprt"]) == (8, 4, False, None)
    assert {row["name"] for row in data["ladder"]} == {"greedy", "random"}
    assert "Arena: Puluc" in (tmp_path / "arena" / "index.html").read_text()
    again = json.loads(said(capsys, *arguments, "--json"))
    assert again["matches"] == data["matches"]
    assert (tmp_path / "arena" / "pairs.jsonl").read_bytes() == pairs
    assert "other settings (seed)" in mistake(capsys, *arguments, "--seed", "1")
    (tmp_path / "arena" / "pairs.jsonl").write_bytes(pairs[:-1])
    assert main([*arguments, "--json"]) == 0
    out, err = capsys.readouterr()
    assert [match["pair_scores"] for match in json.loads(out)["matches"]] == [data["matches"][0]["pair_scores"]]
    assert "the last line was cut" in err


def test_arena_with_a_test_and_a_ladder(capsys: Captured, tmp_path: pathlib.Path) -> None:
    text = said(
        capsys, "arena", "random", "--ladder", "quick", "--game", "petteia", "--variant", "mini", "--games", "4",
        "--sprt", "0", "400", "--reference", "none", "--run-dir", str(tmp_path), "--workers", "1",
    )  # fmt: skip
    assert "LLR" in text
    data = json.loads((tmp_path / "result.json").read_text())
    assert [row["name"] for row in data["ladder"]].count("random") == 1
    assert {"alphabeta:2", "perfect"} <= {row["name"] for row in data["ladder"]}
    assert (data["reference"], data["sprt"]["elo1"]) == (None, 400.0)


def test_arena_mistakes(capsys: Captured, tmp_path: pathlib.Path) -> None:
    inside = ("--run-dir", str(tmp_path / "arena"))
    assert "two players or more" in mistake(capsys, "arena", "random", *ARENA[3:], *inside)
    assert "once" in mistake(capsys, "arena", "random", "random", *ARENA[3:], *inside)
    assert "which game?" in mistake(capsys, "arena", "random", "greedy", *inside)
    assert "even number" in mistake(capsys, *ARENA[:-1], "7", *inside)
    assert "elo0 < elo1" in mistake(capsys, *ARENA, "--sprt", "5", "5", *inside)
    assert "--workers" in mistake(capsys, *ARENA, "--workers", "0", *inside)
    assert "'perfect' does not play" in mistake(capsys, *ARENA, "--anchor", "perfect", *inside)
    assert "without dice" in mistake(capsys, "arena", "alphabeta:1", *ARENA[1:], *inside)
    assert "'high'" in mistake(capsys, *ARENA, "--ladder", "high", *inside)
    assert "did you mean 'greedy'" in mistake(capsys, *ARENA, "--reference", "greddy", *inside)
    (tmp_path / "file").touch()
    assert "file" in mistake(capsys, *ARENA, "--run-dir", str(tmp_path / "file"))
    assert not any((tmp_path / "arena").iterdir())


# -- play ----------------------------------------------------------------------------------------------------------


def answer(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    waiting = iter(lines)

    def ask(prompt: str) -> str:
        try:
            return next(waiting)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", ask)


def test_play_and_leave(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, "A1 -> A2", "text", "quit")
    out = said(capsys, "play", "petteia", "--variant", "mini", "--opponent", "random", "--seed", "1")
    assert "random plays " in out
    assert " o 2 -" in out


def test_play_as_black_from_a_position(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch)
    text = "6/6/2ox2/6/6 o 2 0 0 - - -"
    out = said(capsys, "play", "yote", "--opponent", "greedy", "--side", "black", "--text", text)
    assert "greedy plays C3 -> E3 x D3" in out
    assert "natural wins (captures)." in out
    assert "Left the game." in out


def test_play_beside_a_person_with_hints(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, "hint", "1", "1")
    out = said(capsys, "play", "puluc", "--opponent", "human", "--hint", "greedy", "--seed", "2")
    assert "greedy would play " in out
    assert out.count(" plays ") == 0


def test_play_is_repeatable_by_its_seed(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = []
    for _ in range(2):
        answer(monkeypatch, *["1"] * 8)
        outputs.append(said(capsys, "play", "yut_nori", "--opponent", "random", "--seed", "4", "--side", "random"))
    assert outputs[0] == outputs[1]


def test_play_mistakes(capsys: Captured) -> None:
    assert "which game?" in mistake(capsys, "play")
    assert "no agent 'humn'" in mistake(capsys, "play", "petteia", "--opponent", "humn")
    assert "--side" in mistake(capsys, "play", "petteia", "--side", "white")
    assert "no agent 'wise'" in mistake(capsys, "play", "petteia", "--hint", "wise")


# -- bench ---------------------------------------------------------------------------------------------------------


def test_bench_mistakes(capsys: Captured) -> None:
    assert "there is no game 'go'" in mistake(capsys, "bench", "go")
    assert "must be positive" in mistake(capsys, "bench", "puluc", "--seconds", "0")
    assert "must be positive" in mistake(capsys, "bench", "puluc", "--repetitions", "0")


# -- train, and what a checkpoint says -----------------------------------------------------------------------------

CONFIG = """
seed = 5
[game]
name = "puluc"
variant = "mini"
[budget]
steps = 2000
[network]
width = 8
blocks = 1
[rollout]
games = 32
steps = 8
"""


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A small finished run, made by the command line."""
    folder = tmp_path_factory.mktemp("train")
    (folder / "puluc.toml").write_text(CONFIG)
    arguments = ["train", "--config", str(folder / "puluc.toml"), "--run-dir", str(folder / "run"), "--steps", "600"]
    assert main([*arguments, "--ppo.epochs=1", "--network.blocks", "2", "--set", "ppo.minibatch_size=128"]) == 0
    return folder / "run"


def test_train_follows_the_file_and_what_overrides_it(run_dir: pathlib.Path) -> None:
    record = json.loads((run_dir / "checkpoints" / "final" / "checkpoint.json").read_text())
    assert [(game["game"], game["variant"]) for game in record["games"]] == [("puluc", "mini")]
    assert record["seed"] == 5
    config = record["config"]
    assert (config["ppo"]["epochs"], config["ppo"]["minibatch_size"], config["network"]["width"]) == (1, 128, 8)
    assert record["network"]["blocks"] == 2
    assert 600 <= record["steps"] < 2000


def test_train_help_lists_the_settings(capsys: Captured) -> None:
    out = said(capsys, "train", "--help")
    assert "--ppo.epochs (default 3)" in out
    assert "--game.name (required)" in out


def test_train_mistakes(capsys: Captured, run_dir: pathlib.Path) -> None:
    config = str(run_dir.parent / "puluc.toml")
    there = ("train", "--config", config, "--run-dir", str(run_dir))
    assert "there is no such file" in mistake(capsys, "train", "--config", "nothing.toml")
    assert "already holds a run" in mistake(capsys, *there)
    assert "did you mean 'epochs'" in mistake(capsys, *there, "--ppo.epoch", "2")
    assert "--ppo.epochs needs a value" in mistake(capsys, *there, "--ppo.epochs")
    assert "--set takes KEY=VALUE" in mistake(capsys, *there, "--set", "ppo.epochs")
    assert "ppo.epochs" in mistake(capsys, *there, "--ppo.epochs", "many")
    empty = ("train", "--config", config, "--run-dir", str(run_dir.parent / "other"), "--resume")
    assert str(run_dir.parent / "other") in mistake(capsys, *empty)


def test_damaged_files_of_a_run_are_told_in_one_line(
    capsys: Captured, run_dir: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    run = shutil.copytree(run_dir, tmp_path / "run")
    again = ("train", "--config", str(run_dir.parent / "puluc.toml"), "--run-dir", str(run), "--resume")
    settings = ("--ppo.epochs=1", "--network.blocks", "2", "--set", "ppo.minibatch_size=128")
    (run / "rating_puluc_mini.json").write_text("[")
    assert "delete it to rate anew" in mistake(capsys, *again, *settings)
    (run / "rating_puluc_mini.json").unlink()
    metrics = run / "metrics.jsonl"
    metrics.write_text("{\n" + metrics.read_text())
    assert "line 1 is not JSON; delete it" in mistake(capsys, *again, *settings)


def test_a_checkpoint_is_evaluated_at_its_own_game(capsys: Captured, run_dir: pathlib.Path) -> None:
    checkpoint, report = run_dir / "checkpoints" / "final", run_dir.parent / "report"
    arguments = ("evaluate", str(checkpoint), "--against", "random", "--games", "4")
    data = json.loads(said(capsys, *arguments, "--json", "-", "--record", "--report", str(report)))
    assert (data["game"], data["variant"], data["agent"]) == ("puluc", "mini", str(checkpoint))
    strength = json.loads((checkpoint / "checkpoint.json").read_text())["strength"]
    assert strength["opponents"]["random"]["games"] == 4
    assert strength["seed"] == 0
    page = (report / "index.html").read_text()
    assert "Curves of the training run" in page
    assert tg.load_agent(checkpoint).name == "checkpoints/final"


def test_the_report_of_a_checkpoint_with_a_number_has_its_curves_too(capsys: Captured, run_dir: pathlib.Path) -> None:
    report = run_dir.parent / "numbered"
    checkpoint = f"{run_dir / 'checkpoints' / 'final'}:0"
    said(capsys, "evaluate", checkpoint, "--against", "random", "--games", "4", "--report", str(report))
    assert "Curves of the training run" in (report / "index.html").read_text()


def test_contradicting_a_checkpoint_is_a_mistake(capsys: Captured, run_dir: pathlib.Path) -> None:
    checkpoint = str(run_dir / "checkpoints" / "final")
    arguments = ("evaluate", checkpoint, "--against", "random", "--games", "4")
    assert f"{checkpoint} plays puluc/mini and cannot play puluc/box" in mistake(capsys, *arguments, "--variant", "box")
    assert "cannot play yote/box" in mistake(capsys, *arguments, "--game", "yote")
    assert "cannot play puluc/mini+pieces=3" in mistake(capsys, *arguments, "--option", "pieces=3")
    assert "cannot play petteia/box" in mistake(capsys, "play", "petteia", "--opponent", checkpoint)


def test_playing_a_checkpoint_needs_no_game(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch, run_dir: pathlib.Path
) -> None:
    answer(monkeypatch, "hint", "1", "quit")
    out = said(capsys, "play", "--opponent", str(run_dir / "checkpoints" / "final"), "--seed", "1")
    assert "checkpoints/final would play " in out
    assert "checkpoints/final plays " in out


def test_play_takes_a_checkpoint_in_place_of_a_game(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch, run_dir: pathlib.Path
) -> None:
    monkeypatch.setattr("builtins.input", lambda prompt="": "quit")
    assert main(["play", str(run_dir / "checkpoints" / "final")]) == 0
    assert "removed by natural 0" in capsys.readouterr().out


def test_an_interrupted_run_is_no_success(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trainer, "train", lambda *args, **kwargs: tmp_path / "checkpoints" / "step_10")
    assert main(["train", "--config", "configs/smoke.toml", "--run-dir", str(tmp_path / "run")]) == 1


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("threads=100000", "threads"),
        ("device=meta", "cannot be used"),
        ("device=x", "cannot be used"),
        ("rollout.games=9999999999", "rollout.games"),
    ],
)
def test_settings_out_of_reach_are_mistakes(
    capsys: Captured, tmp_path: pathlib.Path, setting: str, message: str
) -> None:
    text = mistake(
        capsys, "train", "--config", "configs/smoke.toml", "--run-dir", str(tmp_path / "run"), "--set", setting
    )
    assert message in text


def test_solve_keeps_a_table_and_says_what_the_start_is_worth(
    capsys: Captured, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRADGAMES_TABLES", str(tmp_path))
    assert "984 positions in 3 layers" in said(capsys, "solve", "puluc", "--variant", "mini", "--dry-run")
    assert list(tmp_path.iterdir()) == []
    text = said(capsys, "solve", "puluc", "--variant", "mini")
    assert "the side that begins expects +0.0142, which is to win 50.71% of the games" in text
    assert str(tmp_path / "puluc" / "mini") in text
    header = tmp_path / "puluc" / "mini" / "table.json"
    before = header.stat().st_mtime_ns
    result = json.loads(said(capsys, "solve", "puluc", "--variant", "mini", "--json"))
    assert (result["positions"], result["kind"], header.stat().st_mtime_ns) == (984, "expectation", before)
    said(capsys, "solve", "puluc", "--variant", "mini", "--again")
    assert header.stat().st_mtime_ns > before
    assert json.loads(header.read_text())["provenance"]["command"] == "tradgames solve puluc --variant mini --again"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("puluc", "--memory", "0.1"), "needs 0.3 GiB of memory for 21,355,945 positions, and 0.1 GiB may be used"),
        (("puluc", "--memory", "0"), "--memory must be more than 0"),
        (("puluc", "--memory", "inf"), "--memory must be more than 0 and at most 1,048,576 GiB, not inf"),
        (("puluc", "--memory", "1e308"), "--memory must be more than 0 and at most 1,048,576 GiB, not 1e+308"),
        (("puluc", "--memory", "nan"), "--memory must be more than 0"),
        (("yote",), "GiB may be used; parts of it can be solved, such as 'endings-2v2'"),
        (("puluc", "--threads", "0"), "--threads must be at least 1"),
        (("puluc", "--tolerance", "0"), "--tolerance must be a number from 5e-7 to 1"),
        (("puluc", "--part", "endings"), "has no part 'endings'"),
        (("yut_nori", "--variant", "traditional"), "yut_nori with backdo cannot be solved"),
    ],
)
def test_what_cannot_be_solved_is_a_mistake(capsys: Captured, arguments: tuple[str, ...], message: str) -> None:
    assert message in mistake(capsys, "solve", *arguments)


def test_notes_of_a_table_are_not_printed_as_they_are(
    capsys: Captured, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRADGAMES_TABLES", str(tmp_path))
    said(capsys, "solve", "puluc", "--variant", "mini")
    header = tmp_path / "puluc" / "mini" / "table.json"
    notes = {"provenance": {"seconds": "\x1b[31m", "command": "\x1b[31m"}}
    header.write_text(json.dumps(json.loads(header.read_text()) | notes))
    text = said(capsys, "solve", "puluc", "--variant", "mini")
    assert ", solved earlier\n" in text
    assert "\x1b" not in text


def test_a_damaged_table_is_made_again_as_advised(
    capsys: Captured, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRADGAMES_TABLES", str(tmp_path))
    said(capsys, "solve", "puluc", "--variant", "mini")
    (tmp_path / "puluc" / "mini" / "values.npy").write_bytes(b"PK\3\4")
    assert "with tradgames solve --again" in mistake(capsys, "solve", "puluc", "--variant", "mini")
    said(capsys, "solve", "puluc", "--variant", "mini", "--again")
    said(capsys, "solve", "puluc", "--variant", "mini")


def test_solve_on_a_full_disk(capsys: Captured, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setenv("TRADGAMES_TABLES", str(tmp_path))
    monkeypatch.setattr(os, "fsync", full)
    assert main(("solve", "puluc", "--variant", "mini")) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith(f"tradgames: {tmp_path}")
    assert error.endswith(".npy: No space left on device")
