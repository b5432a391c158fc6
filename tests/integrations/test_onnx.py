"""ONNX files: they say what the network says, they play, and a bad one is refused in one line."""

import json
import os
import pathlib
import re
from collections.abc import Callable

import numpy as np
import pytest

import tradgames_env as tg
from tests.agents.test_network import make_checkpoint, make_common_checkpoint
from tests.integrations.tutorials import run_tutorial

pytest.importorskip("onnxscript", reason="pip install 'tradgames-env[onnx]'")
pytest.importorskip("onnxruntime", reason="pip install 'tradgames-env[onnx]'")

import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper

from tradgames_env.agents import onnx as agents_onnx
from tradgames_env.agents.base import Agent
from tradgames_env.agents.checkpoint import CheckpointError, read_checkpoint
from tradgames_env.agents.network import NetworkEvaluator, load_network, load_network_agent
from tradgames_env.agents.onnx import OnnxAgent
from tradgames_env.rules.errors import IllegalMoveError
from tradgames_env.rules.ruleset import load_ruleset
from training import export
from training.cli import main
from training.export import ExportError, export_onnx, positions_from_play

Model = onnx.ModelProto


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[pathlib.Path, pathlib.Path]:
    """A checkpoint of the smallest Puluc, and the file exported from it."""
    folder = tmp_path_factory.mktemp("onnx")
    make_checkpoint(folder / "trained", "puluc", "family")
    export_onnx(folder / "trained", folder / "puluc.onnx")
    return folder / "trained", folder / "puluc.onnx"


def changed(file: pathlib.Path, target: pathlib.Path, change: Callable[[Model], object]) -> pathlib.Path:
    """A copy of a file with something changed."""
    model = onnx.load(file)
    change(model)
    target.write_bytes(model.SerializeToString())
    return target


def refusal(path: pathlib.Path) -> str:
    """The message, after the checks that hold for every refusal."""
    position = tg.Position("puluc", "family", seed=1)
    with pytest.raises(CheckpointError) as caught:
        OnnxAgent(path, lookahead=False).act(position)
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    assert ";" in message  # what to do
    return message


# -- parity ----------------------------------------------------------------------------------------------------------


def answers_of_both(folder: pathlib.Path, file: pathlib.Path, game: str, count: int) -> tuple[list, list]:
    """Logits, value, margin and, where there are any, shares: of the file as others read it, and of torch."""
    checkpoint = read_checkpoint(folder)
    ruleset = next(ruleset for ruleset in checkpoint.rulesets if ruleset.game == game)
    games = tg.BatchGames(game, ruleset.variant, num_games=count, seed=5)
    games.play_random(20)
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    theirs = session.run(None, {"observation": games.observations})
    network = load_network(checkpoint)
    evaluator = NetworkEvaluator(ruleset, network, games=checkpoint.rulesets)
    features = torch.from_numpy(evaluator.features(games.states, games.histories))
    with torch.inference_mode():
        outputs = network.outputs(features, checkpoint.rulesets.index(ruleset))
        value = network(features, checkpoint.rulesets.index(ruleset))[1][:, 0]
    ours = [outputs.logits, value, outputs.margin[:, 0]]
    if network.record.value == "wdl":
        ours.append(torch.softmax(outputs.value, dim=1))
    return theirs, [part.numpy() for part in ours]


def assert_parity(folder: pathlib.Path, file: pathlib.Path, game: str) -> None:
    for count in (1, 3, 256):
        theirs, ours = answers_of_both(folder, file, game, count)
        assert [part.shape for part in theirs] == [part.shape for part in ours]
        for one, other in zip(theirs, ours, strict=True):
            assert one.dtype == np.float32
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
    assert np.ptp(theirs[0]) > 0.5  # the comparison means something: far from zeros


def test_files_say_what_the_network_says(game: str, tmp_path: pathlib.Path) -> None:
    folder = make_checkpoint(tmp_path / "trained", game)
    result = export_onnx(folder, tmp_path / "model.onnx")
    assert result.difference <= 1e-5
    assert [path.name for path in tmp_path.glob("*model*")] == ["model.onnx"]
    assert_parity(folder, tmp_path / "model.onnx", game)


def test_convolutions_with_win_draw_and_loss(tmp_path: pathlib.Path) -> None:
    folder = make_checkpoint(tmp_path / "trained", "petteia", "fr6", trunk="conv", value="wdl")
    export_onnx(folder, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    assert [port.name for port in session.get_outputs()] == ["logits", "value", "margin", "win_draw_loss"]
    assert_parity(folder, tmp_path / "model.onnx", "petteia")


def test_one_game_of_several(tmp_path: pathlib.Path) -> None:
    games = load_ruleset("petteia"), load_ruleset("yote")
    folder = make_common_checkpoint(tmp_path / "trained", *games, trunk="conv", value="wdl")
    with pytest.raises(ValueError, match="plays petteia/box and yote/box; name one of them"):
        export_onnx(folder, tmp_path / "model.onnx")
    with pytest.raises(ValueError, match="no other can be exported"):
        export_onnx(folder, tmp_path / "model.onnx", game="puluc")
    export_onnx(folder, tmp_path / "model.onnx", game="yote")
    assert_parity(folder, tmp_path / "model.onnx", "yote")
    agent = OnnxAgent(tmp_path / "model.onnx")
    assert [ruleset.label for ruleset in agent.rulesets] == ["yote/box"]
    assert agent.act(tg.Position("yote", seed=1))


def test_no_file_is_left_when_parity_fails(
    trained: tuple[pathlib.Path, pathlib.Path], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "TOLERANCE", -1.0)
    with pytest.raises(ExportError, match="nothing was written"):
        export_onnx(trained[0], tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())
    (tmp_path / "model.onnx").write_text("older")
    assert main(["export", str(trained[0]), "-o", str(tmp_path / "model.onnx")]) == 1
    assert [path.read_text() for path in tmp_path.iterdir()] == ["older"]


def test_files_hold_no_paths_and_say_what_they_play(trained: tuple[pathlib.Path, pathlib.Path]) -> None:
    data = trained[1].read_bytes()
    assert b"site-packages" not in data
    assert os.fsencode(pathlib.Path(tg.__file__).parent.parent) not in data
    texts = {entry.key: entry.value for entry in onnx.load(trained[1]).metadata_props}
    assert texts == {
        "format_version": "1",
        "game": "puluc",
        "variant": "family",
        "options": "{}",
        "rules_version": "1",
        "encoder_version": "1",
        "num_actions": str(load_ruleset("puluc", "family").num_actions),
        "lookahead": "true",
        "margin_weight": "0.0",
    }


def test_positions_from_play_are_decisions_of_all_ages() -> None:
    ruleset = load_ruleset("yote")
    states, histories = positions_from_play(ruleset, 100)
    assert len(states) == len(histories) == 100
    assert len(np.unique(states, axis=0)) > 90


# -- playing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lookahead", [True, False])
def test_it_plays_as_the_network_does(trained: tuple[pathlib.Path, pathlib.Path], lookahead: bool) -> None:
    by_torch = load_network_agent(trained[0], device="cpu", lookahead=lookahead)
    by_onnx = OnnxAgent(trained[1], lookahead=lookahead)
    assert isinstance(by_onnx, Agent)
    games = tg.BatchGames("puluc", "family", num_games=50, seed=2)
    games.play_random(12)
    positions = [games.position(index, seed=index) for index in range(50)]
    by_torch.seed(1)
    by_onnx.seed(1)
    assert by_onnx.act_many(positions) == by_torch.act_many(positions)
    for position in positions[:5]:
        assert by_onnx.policy(position) == pytest.approx(by_torch.policy(position), abs=1e-5)
        assert by_onnx.value(position) == pytest.approx(by_torch.value(position), abs=1e-5)


def test_load_agent_and_the_command_line(
    trained: tuple[pathlib.Path, pathlib.Path], capsys: pytest.CaptureFixture[str]
) -> None:
    agent = tg.load_agent(f"onnx:{trained[1]}")
    assert isinstance(agent, OnnxAgent)
    assert agent.name == "puluc.onnx"
    arguments = ["evaluate", f"onnx:{trained[1]}", "--against", "random", "--games", "20", "--json", "-"]
    assert main(arguments) == 0
    assert json.loads(capsys.readouterr().out)["agent"] == arguments[1]


def test_command_line_export(
    trained: tuple[pathlib.Path, pathlib.Path], tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out.onnx"
    assert main(["export", str(trained[0]), "--output", str(output)]) == 0
    assert f"evaluate onnx:{output} --against random" in capsys.readouterr().out
    assert OnnxAgent(output).rulesets[0].label == "puluc/family"
    assert main(["export", str(trained[0]), "--output", str(output), "--game", "yote"]) == 2
    assert main(["export", str(tmp_path), "--output", str(output)]) == 2
    assert main(["export", str(trained[0]), "--output", str(tmp_path / "no" / "out.onnx")]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert "plays puluc/family; no other can be exported" in lines[0]


def test_other_games_and_no_decision(trained: tuple[pathlib.Path, pathlib.Path]) -> None:
    agent = OnnxAgent(trained[1])
    with pytest.raises(ValueError, match=re.escape("puluc.onnx was trained for puluc/family and cannot play yote/box")):
        agent.act(tg.Position("yote"))
    with pytest.raises(IllegalMoveError, match="a throw is due"):
        agent.act(tg.Position("puluc", "family", chance="explicit"))
    assert agent.act_many([]) == []


@pytest.mark.parametrize("threads", [0, 257, True, 1.0])
def test_threads_out_of_range(trained: tuple[pathlib.Path, pathlib.Path], threads: int) -> None:
    with pytest.raises(ValueError, match="threads must be an integer from 1 to 256"):
        OnnxAgent(trained[1], threads=threads)


def test_more_threads_say_the_same(trained: tuple[pathlib.Path, pathlib.Path]) -> None:
    position = tg.Position("puluc", "family", seed=3)
    assert OnnxAgent(trained[1], threads=2).value(position) == pytest.approx(OnnxAgent(trained[1]).value(position))


# -- files that cannot be trusted ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("format_version", "2", "format version '2', this package reads 1"),
        ("rules_version", "2", "trained with version 2 of the rules of puluc, this package has version 1"),
        ("encoder_version", "7", "trained with version 7 of the encoder, this package has version 1"),
        ("game", "chess", "its game cannot be set up"),
        ("variant", "huge", "its game cannot be set up"),
        ("options", '{"pieces": "many"}', "its game cannot be set up"),
        ("options", '{"pieces": [1]}', "option 'pieces' must be a number"),
        ("options", "[]", "field 'options' must be an object"),
        ("options", "[" * 100_000, "its metadata cannot be read"),
        ("num_actions", "3", "it has 3 actions, puluc/family has"),
        ("num_actions", "true", "field 'num_actions' must be an integer, not True"),
        ("lookahead", "1", "field 'lookahead' must be true or false"),
        ("margin_weight", "NaN", "margin_weight must be a number from 0 to 1000"),
        ("margin_weight", "one", "its metadata cannot be read ('one')"),
        ("motto", "veni", "unknown field 'motto'"),
        ("rules_version", None, "field 'rules_version' is missing"),
        ("format_version", None, "it does not say what it plays"),
    ],
)
def test_foreign_metadata(
    trained: tuple[pathlib.Path, pathlib.Path], tmp_path: pathlib.Path, field: str, value: str | None, message: str
) -> None:
    def change(model: Model) -> None:
        texts = {entry.key: entry.value for entry in model.metadata_props} | {field: value}
        helper.set_model_props(model, {key: text for key, text in texts.items() if text is not None})

    assert message in refusal(changed(trained[1], tmp_path / "model.onnx", change))


def rename_input(model: Model) -> None:
    for names in [node.input for node in model.graph.node]:
        names[:] = ["board" if name == "observation" else name for name in names]
    model.graph.input[0].name = "board"


def fix_batch(model: Model) -> None:
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 2


def drop_margin(model: Model) -> None:
    del model.graph.output[2]


def swap_outputs(model: Model) -> None:
    """Logits called margin and the other way round."""
    for node in model.graph.node:
        node.output[:] = [{"logits": "margin", "margin": "logits"}.get(name, name) for name in node.output]
    first, _, third = model.graph.output
    first.name, third.name = third.name, first.name


def spoil_weights(model: Model) -> None:
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            array = np.full_like(numpy_helper.to_array(tensor), np.nan)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def keep_weights_elsewhere(model: Model) -> None:
    tensor = max(model.graph.initializer, key=lambda tensor: len(tensor.raw_data))
    length = len(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "../../etc/passwd"), ("offset", "0"), ("length", str(length))):
        tensor.external_data.add(key=key, value=value)


def call_foreign_code(model: Model) -> None:
    model.graph.node[0].domain = "elsewhere"
    model.opset_import.append(helper.make_opsetid("elsewhere", 1))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (rename_input, "its inputs are board, not observation"),
        (fix_batch, "observation is tensor(float) of [2, "),
        (drop_margin, "its outputs are logits, value, not logits, value, margin"),
        (swap_outputs, "of ['batch'"),
        (spoil_weights, "its network gives numbers that are not finite"),
        (keep_weights_elsewhere, "ONNX Runtime cannot use it"),
        (call_foreign_code, "ONNX Runtime cannot use it"),
    ],
)
def test_foreign_graphs(
    trained: tuple[pathlib.Path, pathlib.Path],
    tmp_path: pathlib.Path,
    change: Callable[[Model], object],
    message: str,
) -> None:
    assert message in refusal(changed(trained[1], tmp_path / "model.onnx", change))


def test_graphs_that_answer_otherwise_than_they_say(
    trained: tuple[pathlib.Path, pathlib.Path], tmp_path: pathlib.Path
) -> None:
    """The value is that of the first position, whatever the batch, though a free batch is declared."""

    def change(model: Model) -> None:
        graph = model.graph
        for node in graph.node:
            node.output[:] = ["whole" if name == "value" else name for name in node.output]
        graph.initializer.append(numpy_helper.from_array(np.array([0]), "start"))
        graph.initializer.append(numpy_helper.from_array(np.array([2]), "stop"))
        graph.node.append(helper.make_node("Concat", ["whole", "whole"], ["twice"], axis=0))
        graph.node.append(helper.make_node("Slice", ["twice", "start", "stop"], ["value"]))

    assert "its answers have other shapes than it says" in refusal(changed(trained[1], tmp_path / "m.onnx", change))


def test_files_that_are_no_models(
    trained: tuple[pathlib.Path, pathlib.Path], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "there is no such file" in refusal(tmp_path / "nowhere.onnx")
    assert "it is a folder" in refusal(tmp_path)
    (tmp_path / "empty.onnx").write_bytes(b"")
    assert "ONNX Runtime cannot use it" in refusal(tmp_path / "empty.onnx")
    (tmp_path / "text.onnx").write_text(json.dumps({"no": "model"}) * 100)
    assert "ONNX Runtime cannot use it" in refusal(tmp_path / "text.onnx")
    (tmp_path / "half.onnx").write_bytes(trained[1].read_bytes()[:5000])
    assert "ONNX Runtime cannot use it" in refusal(tmp_path / "half.onnx")
    (tmp_path / "link.onnx").symlink_to(trained[1])
    assert OnnxAgent(tmp_path / "link.onnx").name == "link.onnx"
    monkeypatch.setattr(agents_onnx, "_MAX_BYTES", 1000)
    assert "bytes are more than the 1,000 it can need" in refusal(trained[1].parent / "puluc.onnx")


def test_the_tutorial_runs() -> None:
    out = run_tutorial("onnx_export", 10)
    assert "largest difference" in out
    assert "games against greedy" in out
