import dataclasses
import hashlib
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
import safetensors.numpy
import torch

import tradgames_env as tg
from tradgames_env.agents.checkpoint import (
    MAX_PARAMETERS,
    TRUNKS,
    CheckpointError,
    GameRecord,
    NetworkRecord,
    PlayRecord,
    read_checkpoint,
)
from tradgames_env.agents.layout import FeatureReader, InputLayout
from tradgames_env.agents.network import (
    NetworkAgent,
    NetworkEvaluator,
    PolicyValueNetwork,
    load_network_agent,
    masked_log_probabilities,
    resolve_device,
)
from tradgames_env.encoding import PLANE_INDEX, Encoder
from tradgames_env.rules.contract import MARGIN, MOVER
from tradgames_env.rules.errors import IllegalMoveError
from tradgames_env.rules.ruleset import Ruleset, load_ruleset
from training.checkpoint import write_checkpoint
from training.config import parse_config

Weights = dict[str, np.ndarray]


def make_network(*games: Ruleset, seed: int = 0, **kinds: str) -> PolicyValueNetwork:
    network = PolicyValueNetwork(NetworkRecord.for_games(games, 16, 2, **kinds))
    network.initialise(torch.Generator().manual_seed(seed))
    with torch.no_grad():
        network.policy.weight.mul_(100.0)  # far from uniform
        for block in network.blocks:
            block.scale.fill_(0.5)
    return network.eval()


def make_checkpoint(
    folder: pathlib.Path, game: str = "puluc", variant: str = "box", seed: int = 0, **kinds: str
) -> pathlib.Path:
    data = {"game": {"name": game, "variant": variant}, "network": {"width": 16, "blocks": 2}, "budget": {"steps": 1}}
    network = make_network(load_ruleset(game, variant), seed=seed, **kinds)
    write_checkpoint(folder, network, parse_config(data, "test"), 1)
    return folder


def make_common_checkpoint(folder: pathlib.Path, *games: Ruleset, **kinds: str) -> pathlib.Path:
    """One network for several games."""
    make_checkpoint(folder, games[0].game, games[0].variant)
    network = make_network(*games, **kinds)
    entries = [dataclasses.asdict(GameRecord.of(ruleset)) for ruleset in games]
    sizes = dataclasses.asdict(network.record)
    rewrite_record(folder, lambda record: record.update(games=entries, network=sizes))
    tensors = {name: tensor.numpy() for name, tensor in network.state_dict().items()}
    replace_weights(folder, safetensors.numpy.save(tensors))
    return folder


def rows_of(game: str, count: int, plies: int = 15) -> tuple[np.ndarray, np.ndarray, list[tg.Position]]:
    """States and histories of ``count`` running positions, and the positions."""
    games = tg.BatchGames(game, num_games=count, seed=3)
    games.play_random(plies)
    positions = [games.position(index, seed=index) for index in range(count)]
    return np.stack([p.rows[0] for p in positions]), np.stack([p.rows[1] for p in positions]), positions


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    return make_checkpoint(tmp_path / "trained")


def rewrite_record(folder: pathlib.Path, change: Callable[[dict], object]) -> None:
    path = folder / "checkpoint.json"
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


def rewrite_weights(folder: pathlib.Path, change: Callable[[Weights], object]) -> None:
    """With a right checksum, so that only the tensors are to blame."""
    tensors = safetensors.numpy.load_file(folder / "model.safetensors")
    change(tensors)
    replace_weights(folder, safetensors.numpy.save(tensors))


def replace_weights(folder: pathlib.Path, data: bytes) -> None:
    (folder / "model.safetensors").write_bytes(data)
    rewrite_record(folder, lambda record: record.update(sha256=hashlib.sha256(data).hexdigest()))


def refusal(folder: pathlib.Path) -> str:
    """The message, after the checks that hold for every refusal."""
    with pytest.raises(CheckpointError) as caught:
        load_network_agent(folder, device="cpu")
    message = str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert "\n" not in message
    assert str(folder) in message
    assert ";" in message  # what to do
    return message


# -- playing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lookahead", [True, False])
def test_plays_legal_games(game: str, variant: str, tmp_path: pathlib.Path, lookahead: bool) -> None:
    folder = make_checkpoint(tmp_path / "c", game, variant)
    agent = load_network_agent(folder, device="cpu", lookahead=lookahead)
    position = tg.Position(game, variant=variant, seed=1)
    for _ in range(25):
        if position.is_over:
            break
        position.push(agent.act(position))
    assert position.move_stack


@pytest.mark.parametrize("lookahead", [True, False])
def test_convolutions_play_legal_games(game: str, tmp_path: pathlib.Path, lookahead: bool) -> None:
    folder = make_checkpoint(tmp_path / "c", game, trunk="conv", value="wdl")
    agent = load_network_agent(folder, device="cpu", lookahead=lookahead)
    position = tg.Position(game, seed=1)
    for _ in range(5):
        position.push(agent.act(position))


def test_policy_and_value(folder: pathlib.Path) -> None:
    agent = load_network_agent(folder, device="cpu")
    position = tg.Position("puluc", seed=4)
    policy = agent.policy(position)
    assert list(policy) == position.legal_moves()
    assert sum(policy.values()) == pytest.approx(1.0)
    assert -1.0 <= agent.value(position) <= 1.0
    assert load_network_agent(folder, device="cpu", lookahead=False).act(position) == max(
        policy, key=policy.__getitem__
    )


def test_many_positions_are_played_as_one_by_one(game: str, tmp_path: pathlib.Path) -> None:
    agent = load_network_agent(make_checkpoint(tmp_path / "c", game), device="cpu", lookahead=False)
    games = tg.BatchGames(game, num_games=50, seed=3)
    games.play_random(15)
    positions = [games.position(index, seed=index) for index in range(50)]
    assert agent.act_many(positions) == [agent.act(position) for position in positions]
    assert agent.act_many([]) == []


def test_temperature_draws_from_the_policy_by_its_own_generator(folder: pathlib.Path) -> None:
    agent = load_network_agent(folder, device="cpu", temperature=1.0)
    assert not agent.lookahead
    position = next(
        p for p in (tg.Position.from_text("puluc", f"-/o/-/o/-/-/-/-/- 3 5 0 0 o {n}") for n in range(1, 6))
    )
    policy = agent.policy(position)
    agent.seed(1)
    drawn = agent.act_many([position] * 4000)
    for move, share in policy.items():
        assert drawn.count(move) / 4000 == pytest.approx(share, abs=0.04)
    agent.seed(1)
    assert agent.act_many([position] * 4000) == drawn
    agent.seed(2)
    assert agent.act_many([position] * 4000) != drawn


def test_exact_ties_are_drawn(folder: pathlib.Path) -> None:
    rewrite_weights(folder, lambda tensors: [tensor.fill(0.0) for tensor in tensors.values()])
    agent = load_network_agent(folder, device="cpu", lookahead=False)
    position = tg.Position.from_text("puluc", "-/o/-/o/-/-/-/-/- 3 5 0 0 o 1")
    assert {agent.act(position) for _ in range(60)} == set(position.legal_moves())


def test_padding_does_not_change_what_is_read() -> None:
    ruleset = load_ruleset("petteia", "fr6")
    plain, padded = Encoder(ruleset), Encoder(ruleset, pad_to=(12, 9))
    position = tg.Position("petteia", variant="fr6", seed=0)
    position.push(position.legal_moves()[3])
    seen = [encoder.observe(position).reshape(-1)[encoder.informative_cells()] for encoder in (plain, padded)]
    np.testing.assert_array_equal(*seen)


def test_foreign_and_undecided_positions_are_refused(folder: pathlib.Path) -> None:
    agent = load_network_agent(folder, device="cpu")
    for position in (tg.Position("puluc", variant="mini"), tg.Position("yote"), tg.Position("puluc", pieces=4)):
        for ask in (agent.act, agent.policy, agent.value):
            with pytest.raises(ValueError, match=r"was trained for puluc/box and cannot play"):
                ask(position)
    with pytest.raises(IllegalMoveError, match="a throw is due"):
        agent.act(tg.Position("puluc", chance="explicit"))
    over = tg.Position.from_text("puluc", "-/-/-/-/-/-/-/-/- 5 0 5 0 x -")
    assert over.is_over
    with pytest.raises(IllegalMoveError, match="the game is over"):
        agent.act(over)


def test_variants_of_equal_options_are_the_same_game(tmp_path: pathlib.Path) -> None:
    agent = load_network_agent(make_checkpoint(tmp_path / "c", "petteia", "box"), device="cpu")
    assert agent.act(tg.Position("petteia", variant="fr8"))


def test_wrong_arguments(folder: pathlib.Path) -> None:
    for temperature in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="temperature must be"):
            load_network_agent(folder, temperature=temperature)
    with pytest.raises(ValueError, match="cannot be used with lookahead"):
        load_network_agent(folder, temperature=1.0, lookahead=True)
    with pytest.raises(ValueError, match="device 'toaster' cannot be used"):
        resolve_device("toaster")


def test_illegal_actions_get_nothing() -> None:
    legal = torch.tensor([[True, False, True], [False, True, False]])
    found = masked_log_probabilities(torch.tensor([[0.0, 900.0, 0.0], [-900.0, -900.0, 900.0]]), legal).exp()
    torch.testing.assert_close(found, torch.tensor([[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]]))


@pytest.mark.parametrize("value", ["scalar", "wdl"])
@pytest.mark.parametrize("trunk", TRUNKS)
def test_initial_weights_do_not_touch_the_global_generator(trunk: str, value: str) -> None:
    before = torch.random.get_rng_state()
    grid = (2, 3, 4) if trunk == "conv" else None
    network = PolicyValueNetwork(NetworkRecord(26, (4, 7), 8, 2, trunk, value, grid))
    network.initialise(torch.Generator().manual_seed(0))
    assert torch.equal(before, torch.random.get_rng_state())
    assert all(torch.isfinite(tensor).all() for tensor in network.state_dict().values())
    assert {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()} == (
        network.record.tensor_shapes()
    )


@pytest.mark.parametrize("trunk", TRUNKS)
def test_every_weight_matters_and_is_learned(trunk: str) -> None:
    ruleset = load_ruleset("yote")
    network = make_network(ruleset, trunk=trunk, value="wdl")
    states, histories, _ = rows_of("yote", 32)
    features = FeatureReader(ruleset, InputLayout.of([ruleset], whole_planes=trunk == "conv"))(states, histories)
    logits, values = network(torch.from_numpy(features))
    (logits.square().sum() + values.square().sum()).backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 0.0, name


def test_value_of_win_draw_and_loss() -> None:
    network = make_network(load_ruleset("puluc"), value="wdl")
    features = torch.randn(5, network.record.inputs, generator=torch.Generator().manual_seed(1))
    outputs = network.outputs(features)
    shares = torch.softmax(outputs.value, dim=1)
    logits, values = network(features)
    assert outputs.value.shape == (5, 3)
    assert torch.equal(logits, outputs.logits)
    torch.testing.assert_close(values, torch.cat([shares[:, :1] - shares[:, 2:], outputs.margin], dim=1))


# -- what is read ----------------------------------------------------------------------------------------------------


def test_one_game_reads_its_informative_cells(game: str) -> None:
    ruleset = load_ruleset(game)
    states, histories, positions = rows_of(game, 20)
    layout = InputLayout.of([ruleset], whole_planes=False)
    encoder = Encoder(ruleset)
    np.testing.assert_array_equal(layout.cells, encoder.informative_cells())
    seen = np.stack([encoder.observe(position).reshape(-1)[layout.cells] for position in positions])
    np.testing.assert_array_equal(FeatureReader(ruleset, layout)(states, histories), seen)


@pytest.mark.parametrize("whole_planes", [False, True])
def test_common_layout_is_cut_from_padded_observations(whole_planes: bool) -> None:
    games = [load_ruleset(name) for name in tg.games()]
    layout = InputLayout.of(games, whole_planes=whole_planes)
    assert len(set(layout.cells.tolist())) == len(layout.cells)
    area = layout.board[0] * layout.board[1]
    assert {PLANE_INDEX["playable"]} <= set((layout.cells // area).tolist())
    for ruleset in games:
        encoder = Encoder(ruleset, layout.board)
        assert set(encoder.informative_cells().tolist()) <= set(layout.cells.tolist())
        states, histories, positions = rows_of(ruleset.game, 10)
        seen = np.stack([encoder.observe(position).reshape(-1)[layout.cells] for position in positions])
        np.testing.assert_array_equal(FeatureReader(ruleset, layout)(states, histories), seen)
    if whole_planes:
        np.testing.assert_array_equal(
            layout.cells[: layout.planes * area] % area, np.tile(np.arange(area), layout.planes)
        )


# -- evaluating rows -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trunk", TRUNKS)
def test_evaluator_says_what_the_agent_says(game: str, tmp_path: pathlib.Path, trunk: str) -> None:
    folder = make_checkpoint(tmp_path / "c", game, trunk=trunk)
    agent = load_network_agent(folder, device="cpu", lookahead=False)
    states, histories, positions = rows_of(game, 20)
    evaluate = NetworkEvaluator(load_ruleset(game), make_network(load_ruleset(game), trunk=trunk))
    logits, utilities = evaluate(states, histories)
    assert (logits.dtype, utilities.dtype) == (np.float32, np.float32)
    assert (logits.shape, utilities.shape) == ((20, load_ruleset(game).num_actions), (20,))
    for row, position in enumerate(positions):
        assert agent.value(position) == pytest.approx(float(np.clip(utilities[row], -1.0, 1.0)), abs=1e-5)
        legal = np.exp(logits[row, position.legal_actions()].astype(float))
        assert list(agent.policy(position).values()) == pytest.approx((legal / legal.sum()).tolist(), abs=1e-5)


def test_utilities_hold_the_margin_so_far_and_its_change() -> None:
    ruleset = load_ruleset("yote")
    network = make_network(ruleset)
    states, histories, _ = rows_of("yote", 40, 40)
    assert len(set(states[:, MOVER])) == 2
    assert (states[:, MARGIN] != 0).any()
    plain = NetworkEvaluator(ruleset, network)
    _, values = plain.evaluate(states, histories)
    now = np.where(states[:, MOVER] == 0, 1, -1) * states[:, MARGIN] / ruleset.rules.margin_scale(ruleset.options)
    _, utilities = NetworkEvaluator(ruleset, network, 0.5)(states, histories)
    np.testing.assert_allclose(plain(states, histories)[1], values[:, 0].numpy(), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(
        utilities, values[:, 0].numpy() + 0.5 * (now + values[:, 1].numpy()), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("trunk", TRUNKS)
def test_neighbours_in_the_batch_change_nothing(trunk: str) -> None:
    ruleset = load_ruleset("yote")
    evaluate = NetworkEvaluator(ruleset, make_network(ruleset, trunk=trunk, value="wdl"), 0.5)
    states, histories, _ = rows_of("yote", 61)
    whole = evaluate(states, histories)
    for rows in (slice(0, 1), slice(3, 8), slice(40, 61), slice(60, None, -1)):
        part = evaluate(np.ascontiguousarray(states[rows]), np.ascontiguousarray(histories[rows]))
        for found, expected in zip(part, whole, strict=True):
            np.testing.assert_array_equal(found, expected[rows])


def test_evaluator_refuses_foreign_games() -> None:
    network = make_network(load_ruleset("yote"))
    for games in ((), (load_ruleset("yote"),)):
        with pytest.raises(ValueError, match="the network was made for other games than"):
            NetworkEvaluator(load_ruleset("puluc"), network, games=games)


# -- one network for several games -----------------------------------------------------------------------------------


@pytest.mark.parametrize("trunk", TRUNKS)
@pytest.mark.parametrize("lookahead", [True, False])
def test_one_network_plays_all_its_games(tmp_path: pathlib.Path, trunk: str, lookahead: bool) -> None:
    games = [load_ruleset(name) for name in tg.games()]
    folder = make_common_checkpoint(tmp_path / "c", *games, trunk=trunk, value="wdl")
    agent = load_network_agent(folder, device="cpu", lookahead=lookahead)
    assert agent.rulesets == tuple(games)
    positions = [rows_of(ruleset.game, 3)[2] for ruleset in games]
    for alike in positions:
        for position, move in zip(alike, agent.act_many(alike), strict=True):
            assert move in position.legal_moves()
            assert sum(agent.policy(position).values()) == pytest.approx(1.0)
    with pytest.raises(ValueError, match=f"positions of one game are wanted, not of {games[0].label} and others"):
        agent.act_many([positions[0][0], positions[1][0]])
    with pytest.raises(ValueError, match=r"was trained for .* and .* and cannot play puluc/mini"):
        agent.act(tg.Position("puluc", variant="mini"))


def test_games_share_all_but_their_policy_heads() -> None:
    games = [load_ruleset("puluc"), load_ruleset("yote")]
    network = make_network(*games)
    features = torch.randn(4, network.record.inputs, generator=torch.Generator().manual_seed(1))
    (puluc, values), (yote, same) = network(features, 0), network(features, 1)
    assert torch.equal(values, same)
    torch.testing.assert_close(
        torch.cat([puluc, yote], dim=1), network.policy(network.neck(_trunk(network, features))[0])
    )


def _trunk(network: PolicyValueNetwork, features: torch.Tensor) -> torch.Tensor:
    hidden = network.stem(features)
    for block in network.blocks:
        hidden = block(hidden)
    return hidden


def test_wrong_lists_of_games(tmp_path: pathlib.Path) -> None:
    folder = make_common_checkpoint(tmp_path / "c", load_ruleset("puluc"), load_ruleset("yote"))
    sound = json.loads((folder / "checkpoint.json").read_text())["games"]
    for games, message in (
        (sound[:1], "it names 1 games, its network plays 2"),
        ([sound[0], sound[0]], "it names a game twice"),
        (sound[::-1], "its network has"),
        ([sound[0], 5], "each of its games must be an object, not 5"),
        ({}, "'games' must be a list"),
    ):
        rewrite_record(folder, lambda record, games=games: record.update(games=games))
        assert message in refusal(folder)


def test_torch_is_imported_for_a_network_alone(folder: pathlib.Path) -> None:
    script = (
        "import sys, tradgames_env as tg\n"
        "from tradgames_env.agents.checkpoint import read_checkpoint\n"
        f"read_checkpoint({str(folder)!r})\n"
        "tg.load_agent('greedy')\n"
        "assert 'torch' not in sys.modules\n"
        f"tg.load_agent({str(folder)!r})\n"
        "assert 'torch' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_load_agent_takes_the_folder(folder: pathlib.Path) -> None:
    assert isinstance(tg.load_agent(str(folder)), NetworkAgent)


# -- hostile and damaged checkpoints -----------------------------------------------------------------------------------


def test_missing_things(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    assert "there is no such folder" in refusal(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    assert "checkpoint.json: the file is missing" in refusal(tmp_path / "empty")
    (folder / "model.safetensors").unlink()
    assert "model.safetensors: the file is missing" in refusal(folder)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not readable as JSON"),
        ("[]", "does not hold a JSON object"),
        ("{", "not readable as JSON"),
        ("[" * 100_000, "not readable as JSON"),
        ('{"steps": NaN}', "not readable as JSON"),
        ('{"steps": ' + "9" * 5000 + "}", "not readable as JSON"),
        ("{}", "format version None"),
        (" " * 2_000_000, "bytes are more than"),
    ],
)
def test_record_that_is_no_record(folder: pathlib.Path, text: str, message: str) -> None:
    (folder / "checkpoint.json").write_text(text)
    assert message in refusal(folder)


def test_record_of_wrong_bytes(folder: pathlib.Path) -> None:
    (folder / "checkpoint.json").write_bytes(b'{"game": "\xff"}')
    assert "not readable as JSON" in refusal(folder)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("format_version", 1, "format version 1, this package reads 2"),
        ("format_version", 99, "format version 99, this package reads"),
        ("encoder_version", 99, "version 99 of the encoder, this package has"),
        ("steps", 1.5, "'steps' must be an integer, not 1.5"),
        ("steps", True, "'steps' must be an integer, not True"),
        ("strength", [], "'strength' must be an object or null"),
        ("sha256", "0" * 64, "its checksum is not the one in checkpoint.json"),
    ],
)
def test_wrong_fields(folder: pathlib.Path, field: str, value: object, message: str) -> None:
    rewrite_record(folder, lambda record: record.update({field: value}))
    assert message in refusal(folder)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("game", 5, "'game' must be a text, not 5"),
        ("game", "../../etc/passwd", "there is no game"),
        ("game", "chess", "there is no game 'chess'"),
        ("variant", "none", "has no variant 'none'"),
        ("options", {"pieces": 99}, "option 'pieces' must be"),
        ("options", {"pieces": [1]}, "option 'pieces' must be a number"),
        ("options", {"variant": "mini"}, "its game cannot be set up"),
        ("options", {"colour": 1}, "has no option 'colour'"),
        ("rules_version", 99, "version 99 of the rules of puluc, this package has"),
        ("seats", 2, "unknown field 'seats'"),
    ],
)
def test_wrong_games(folder: pathlib.Path, field: str, value: object, message: str) -> None:
    rewrite_record(folder, lambda record: record["games"][0].update({field: value}))
    assert message in refusal(folder)


@pytest.mark.parametrize("field", ["game", "variant", "options", "rules_version"])
def test_messages_stay_short_whatever_a_record_holds(folder: pathlib.Path, field: str) -> None:
    long = "x" * 500_000
    values = {"options": {long: long}, "rules_version": int("9" * 4000)}
    rewrite_record(folder, lambda record: record["games"][0].update({field: values.get(field, long)}))
    assert len(refusal(folder)) < 1000


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("width", 32, "its network needs"),
        ("blocks", 1, "is unknown"),
        ("blocks", 3, "is missing"),
        ("width", 10**9, "network width must be an integer from 1 to 4096"),
        ("width", -1, "network width must be"),
        ("width", True, "'width' must be an integer, not True"),
        ("blocks", 10**18, "network blocks must be"),
        ("inputs", 7, "its network has 7 inputs"),
        ("inputs", True, "'inputs' must be an integer, not True"),
        ("actions", 7, "'actions' must be a list, not 7"),
        ("actions", [7], "its network has"),
        ("actions", [True], "network actions must be an integer"),
        ("actions", [[7]], "network actions must be an integer"),
        ("actions", [], "network number of games must be an integer from 1"),
        ("actions", [5] * 65, "network number of games must be an integer from 1 to 64"),
        ("actions", [5, 5], "it names 1 games, its network plays 2"),
        ("trunk", "transformer", "network trunk must be one of mlp, conv"),
        ("trunk", "conv", "network grid must be given for trunk 'conv' alone"),
        ("grid", [1, 1, 1], "network grid must be given for trunk 'conv' alone"),
        ("value", "wdl", "its network needs"),
        ("value", "lottery", "network value must be one of scalar, wdl"),
        ("depth", 3, "unknown field 'depth'"),
    ],
)
def test_wrong_network_sizes(folder: pathlib.Path, field: str, value: object, message: str) -> None:
    rewrite_record(folder, lambda record: record["network"].update({field: value}))
    assert message in refusal(folder)


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ([4, 5], "network grid length must be"),
        ([4, 5, -1], "network grid must be an integer from 1"),
        ([4, 5, "6"], "network grid must be an integer from 1"),
        ([900, 900, 900], "holds more than its"),
        ([1, 1, 1], "its network has"),
        ("wide", "'grid' must be a list or null"),
    ],
)
def test_wrong_grids(tmp_path: pathlib.Path, grid: object, message: str) -> None:
    folder = make_checkpoint(tmp_path / "c", trunk="conv")
    rewrite_record(folder, lambda record: record["network"].update(grid=grid))
    assert message in refusal(folder)


def test_a_record_cannot_ask_for_gigabytes(folder: pathlib.Path) -> None:
    rewrite_record(folder, lambda record: record["network"].update(width=4096, blocks=64))
    assert f"is larger than {MAX_PARAMETERS:,}" in refusal(folder)
    with pytest.raises(ValueError, match="is larger than"):
        NetworkRecord(1_000_000, (1_000_000,), 4096, 64)


@pytest.mark.parametrize("field", ["games", "network", "play", "sha256", "config"])
def test_missing_and_extra_fields(folder: pathlib.Path, field: str) -> None:
    rewrite_record(folder, lambda record: record.pop(field))
    assert f"field {field!r} is missing" in refusal(folder)


def test_extra_field(folder: pathlib.Path) -> None:
    rewrite_record(folder, lambda record: record.update(command="rm"))
    assert "unknown field 'command'" in refusal(folder)


@pytest.mark.parametrize("value", [-1.0, 1e9, "1", True, None])
def test_wrong_way_to_play(folder: pathlib.Path, value: object) -> None:
    rewrite_record(folder, lambda record: record["play"].update(margin_weight=value))
    assert "margin_weight" in refusal(folder)


def test_wrong_searches_to_play_with() -> None:
    for wrong in ({"simulations": -1}, {"simulations": 10**7}, {"plies": 17}):
        with pytest.raises(ValueError, match=r"play simulations|play plies"):
            PlayRecord(**wrong)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers(folder: pathlib.Path, value: float) -> None:
    rewrite_weights(folder, lambda tensors: tensors["policy.weight"].__setitem__((0, 0), value))
    assert "tensor 'policy.weight' holds numbers that are not finite" in refusal(folder)


def test_tensors_of_other_kinds_and_shapes(folder: pathlib.Path) -> None:
    weights = safetensors.numpy.load_file(folder / "model.safetensors")
    changes: dict[str, Weights] = {
        "needs ('F32'": {"value.bias": weights["value.bias"].astype(np.float64)},
        "tensor 'value.weight' is": {"value.weight": weights["value.weight"].T.copy()},
        "tensor 'extra' is unknown": {"extra": np.zeros(1, np.float32)},
    }
    for message, change in changes.items():
        replace_weights(folder, safetensors.numpy.save(weights | change))
        assert message in refusal(folder)
    del weights["margin.bias"]
    replace_weights(folder, safetensors.numpy.save(weights))
    assert "tensor 'margin.bias' is missing" in refusal(folder)


def test_damaged_weights(folder: pathlib.Path) -> None:
    whole = (folder / "model.safetensors").read_bytes()
    flipped = bytearray(whole)
    flipped[-3] ^= 1
    (folder / "model.safetensors").write_bytes(flipped)
    assert "its checksum is not the one" in refusal(folder)
    header = (2**62).to_bytes(8, "little")
    for data, message in (
        (b"", "header is cut off or oversized"),
        (whole[:5], "header is cut off or oversized"),
        (whole[:50], "header is cut off or oversized"),
        (whole[:-4], "bytes of weights, not"),
        (whole + b"\0" * 8, "bytes of weights, not"),
        (header + whole[8:], "header is cut off or oversized"),
        ((3).to_bytes(8, "little") + b"{]}" + whole[8:], "not readable as JSON"),
        (whole + b"\0" * 3_000_000, "bytes are more than"),
    ):
        replace_weights(folder, data)
        assert message in refusal(folder)


def test_overlapping_tensors(folder: pathlib.Path) -> None:
    whole = (folder / "model.safetensors").read_bytes()
    length = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + length])
    header["margin.weight"]["data_offsets"] = header["value.weight"]["data_offsets"]
    text = json.dumps(header).encode()
    replace_weights(folder, len(text).to_bytes(8, "little") + text + whole[8 + length :])
    assert "its tensors cannot be read" in refusal(folder)


@pytest.mark.parametrize("name", ["checkpoint.json", "model.safetensors"])
def test_links_pipes_and_folders(folder: pathlib.Path, name: str) -> None:
    path = folder / name
    data = path.read_bytes()
    elsewhere = folder.parent / "elsewhere"
    elsewhere.write_bytes(data)
    for target in (elsewhere, pathlib.Path("/dev/zero"), path):
        path.unlink()
        path.symlink_to(target)
        assert f"{name}: it is a link" in refusal(folder)
    path.unlink()
    path.mkdir()
    refusal(folder)
    path.rmdir()
    os.mkfifo(path)
    assert "it is not a plain file" in refusal(folder)


def test_a_sound_checkpoint_passes_all_of_this(folder: pathlib.Path) -> None:
    assert read_checkpoint(folder).record.games[0].game == "puluc"
    rewrite_weights(folder, lambda tensors: tensors["value.bias"].fill(0.25))
    assert load_network_agent(folder, device="cpu")


@pytest.mark.parametrize("lookahead", [True, False])
def test_weights_too_large_to_give_numbers_are_refused_by_name(folder: pathlib.Path, lookahead: bool) -> None:
    rewrite_weights(folder, lambda tensors: tensors.update({name: tensor * 1e30 for name, tensor in tensors.items()}))
    agent = load_network_agent(folder, lookahead=lookahead)
    with pytest.raises(CheckpointError, match="numbers that are not finite"):
        agent.act(tg.Position("puluc", seed=1))
