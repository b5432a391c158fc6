"""The encoder tested by meaning: what is seen is the position, whole, from the right side."""

import itertools
import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tradgames_env as tg
from tests.encoding.decoder import DECODERS, Decoded, normal_form, unused_planes
from tests.rules.test_against_reference import MORE_OPTIONS, case_name
from tradgames_env.encoding import PLANE_INDEX, PLANES, Encoder
from tradgames_env.position import Position
from tradgames_env.rules.ruleset import load_ruleset


def random_positions(position: Position, seed: int, most: int = 250) -> Any:
    """The positions of a random game, the final one included."""
    choose = random.Random(seed)
    for _ in range(most):
        yield position
        if position.is_over:
            return
        position.push(choose.choice(position.legal_actions()))


def check_decodes(game: str, variant: str, options: dict[str, Any], seeds: range) -> None:
    encoder = Encoder(load_ruleset(game, variant, **options))
    low, high = -1.0, 1.0
    for seed in seeds:
        for position in random_positions(Position(game, variant, seed=seed, **options), seed):
            if position.is_over:
                break
            for seat in range(encoder.ruleset.num_seats):
                observation = encoder.observe(position, seat)
                seen = Decoded(encoder.ruleset, observation)
                assert observation.min() >= low
                assert observation.max() <= high
                assert seen.colour == seat % 2
                assert bool(seen.scalar("my_turn")) == (seat == position.seat)
                captures = seen.scalars_by_colour("captures")
                assert captures[0] - captures[1] == position.margin
                if "turns" in seen.scales:
                    assert seen.scalar("turns") == position.turns
                if "balance" in seen.scales:
                    assert seen.scalar("balance") == (position.balance or 0) * (1 if seat == 0 else -1)
                if encoder.ruleset.num_seats == 2 or seat == position.seat:
                    text = DECODERS[game](encoder.ruleset, seen)
                    assert text == normal_form(encoder.ruleset, position.text())


def test_observation_rebuilds_position(game: str, variant: str) -> None:
    check_decodes(game, variant, {}, range(2))


@pytest.mark.parametrize("case", MORE_OPTIONS, ids=case_name)
def test_observation_rebuilds_position_with_options(case: tuple[str, str, dict[str, Any]]) -> None:
    game, variant, options = case
    check_decodes(game, variant, options, range(2))


def test_different_positions_look_different(game: str, variant: str) -> None:
    encoder = Encoder(load_ruleset(game, variant))
    seen: dict[bytes, str] = {}
    for position in itertools.chain.from_iterable(
        random_positions(Position(game, variant, seed=seed), seed) for seed in range(3)
    ):
        if position.is_over:
            continue
        # Repetitions and turn counts are seen but are not part of the text.
        observation = encoder.observe(position, 0)
        observation[[PLANE_INDEX["repetition"], PLANE_INDEX["turns"], PLANE_INDEX["balance"]]] = 0
        text = normal_form(encoder.ruleset, position.text())
        assert seen.setdefault(observation.tobytes(), text) == text


def test_unused_planes_are_zero_and_playable_is_the_board(game: str, variant: str) -> None:
    encoder = Encoder(load_ruleset(game, variant))
    position = Position(game, variant, seed=4)
    observation = encoder.observe(position)
    for name in unused_planes(encoder.ruleset):
        assert not observation[PLANE_INDEX[name]].any(), name
    playable = np.zeros(encoder.shape[1:])
    for cell in encoder.ruleset.layout.cells:
        playable[cell] = 1
    assert (observation[PLANE_INDEX["playable"]] == playable).all()


def test_padding_keeps_the_board_in_the_corner(game: str) -> None:
    ruleset = load_ruleset(game)
    plain, padded = Encoder(ruleset), Encoder(ruleset, (12, 12))
    position = Position(game, seed=2)
    small, large = plain.observe(position), padded.observe(position)
    height, width = small.shape[1:]
    sites = [PLANE_INDEX[plane.name] for plane in PLANES if plane.kind == "site"]
    assert large.shape == (len(PLANES), 12, 12)
    assert (large[:, :height, :width] == small).all()
    assert not large[sites, height:].any()
    assert not large[sites, :, width:].any()
    assert (
        plain.observe(position).ravel()[plain.informative_cells()] == large.ravel()[padded.informative_cells()]
    ).all()


def test_observations_share_nothing(game: str) -> None:
    encoder = Encoder(load_ruleset(game))
    positions = [position.copy() for position in random_positions(Position(game, seed=5), 5, 40)]
    fresh = [Encoder(load_ruleset(game)).observe(position) for position in positions]
    for seen in (encoder.observe(position) for position in positions):
        seen.fill(7.0)
    with ThreadPoolExecutor(4) as threads:
        for _ in range(20):
            for seen, expected in zip(threads.map(encoder.observe, positions), fresh, strict=True):
                assert (seen == expected).all()


def test_padding_smaller_than_the_board_is_refused() -> None:
    with pytest.raises(ValueError, match=r"pad_to \(4, 4\) is smaller than the board"):
        Encoder(load_ruleset("petteia"), (4, 4))


def test_informative_cells_hold_everything_that_changes(game: str, variant: str) -> None:
    encoder = Encoder(load_ruleset(game, variant))
    cells = encoder.informative_cells()
    assert len(set(cells.tolist())) == len(cells)
    kept: dict[bytes, bytes] = {}
    for position in random_positions(Position(game, variant, seed=9), 9):
        observation = encoder.observe(position)
        assert kept.setdefault(observation.ravel()[cells].tobytes(), observation.tobytes()) == observation.tobytes()


def test_repetition_is_seen() -> None:
    position = Position("petteia")
    encoder = Encoder(position.ruleset)
    seen = [Decoded(position.ruleset, encoder.observe(position)).scalar("repetition")]
    for move in ("A1-A2", "A8-A7", "A2-A1", "A7-A8"):
        position.push(move)
        seen.append(Decoded(position.ruleset, encoder.observe(position)).scalar("repetition"))
    assert seen == [0, 0, 0, 0, 1]


def test_partner_is_seen_in_team_games() -> None:
    encoder = Encoder(load_ruleset("yut_nori", "teams"))
    position = Position("yut_nori", "teams", seed=1)
    assert [Decoded(encoder.ruleset, encoder.observe(position, seat)).scalar("partner") for seat in range(4)] == [
        0,
        0,
        1,
        1,
    ]


def test_batch_and_single_observations_are_equal(game: str, variant: str) -> None:
    games = tg.BatchGames(game, variant, num_games=7, seed=3)
    for _ in range(30):
        games.step(games.sample_legal_actions())
        for index in range(7):
            single = games.encoder.observe(games.position(index))
            assert (games.observations[index] == single).all()


def test_features_are_the_informative_cells(game: str, variant: str) -> None:
    encoder = Encoder(load_ruleset(game, variant))
    positions = [position.copy() for position in random_positions(Position(game, variant, seed=2), 2)]
    states, histories = (np.stack(part) for part in zip(*(position.rows for position in positions), strict=True))
    seats = np.array([position.seat for position in positions], np.int8)
    seats[::2] ^= 1
    planes = encoder.encode(states, histories, seats).reshape(len(states), -1)
    assert (encoder.features(states, histories, seats) == planes[:, encoder.informative_cells()]).all()
