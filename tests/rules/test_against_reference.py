"""Kernels against the slow reference implementations, which were written from the rules alone."""

import importlib
import random
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tradgames_env as tg
from tests.conftest import ALL_VARIANTS
from tradgames_env.position import Position

# Options beyond the variants, so that every option meets the reference in play.
MORE_OPTIONS: list[tuple[str, str, dict[str, Any]]] = [
    ("petteia", "mini", {"forced_capture": True}),
    ("petteia", "fr6", {"corner_capture": True, "quiet_limit": 30}),
    ("petteia", "fr6", {"leader": True, "forced_capture": True, "corner_capture": True}),
    ("petteia", "simple", {"leader": True}),
    ("petteia", "box", {"rows": 9, "cols": 5, "stone_rows": 2, "capture_target": 4, "leader": True}),
    ("petteia", "mini", {"die_limit": 4, "stake_die": 6, "first_player": "black"}),
    ("petteia", "mini", {"stalled_result": "most_captures", "quiet_limit": 12}),
    ("petteia", "mini", {"quiet_limit": 0}),
    ("petteia", "mini", {"repetition_limit": 0, "quiet_limit": 40}),
    ("petteia", "mini", {"max_turns": 9}),
    ("petteia", "box", {"rows": 12, "cols": 12, "quiet_limit": 40}),
    ("puluc", "family", {"pass_rule": "stuck"}),
    ("puluc", "family", {"pass_rule": "always", "throw_table": "marked_plus_one"}),
    ("puluc", "mini", {"first_player": "throw_off", "max_turns": 20}),
    ("puluc", "box", {"length": 15, "pieces": 6, "stick_p": 0.7}),
    ("yote", "mini", {"return_ban": "off"}),
    ("yote", "mini", {"few_pieces_draw": 2, "first_player": "black"}),
    ("yote", "box", {"rows": 4, "cols": 3, "pieces": 4, "quiet_limit": 20}),
    ("yote", "mini", {"quiet_limit": 0, "max_turns": 60}),
    ("yut_nori", "duel", {"nak_prob": 0.2}),
    ("yut_nori", "duel", {"extra_on_yut_mo": True, "stick_p": 0.2}),
    ("yut_nori", "duel", {"extra_on_yut_mo": True, "bonus_stacking": False, "stick_p": 0.8}),
    ("yut_nori", "duel", {"backdo": True}),
    ("yut_nori", "box", {"backdo": True, "finish": "pass"}),
    ("yut_nori", "traditional", {"stick_p": 0.25, "pieces": 3}),
    ("yut_nori", "duel", {"finish": "pass", "first_player": "natural"}),
    ("yut_nori", "duel", {"max_turns": 15}),
]
CASES = [(game, variant, {}) for game, variant in ALL_VARIANTS] + MORE_OPTIONS


def reference_of(game: str) -> ModuleType:
    return importlib.import_module(f"tests.reference.{game}")


def case_name(case: tuple[str, str, dict[str, Any]]) -> str:
    game, variant, options = case
    return "-".join([game, variant, *(f"{key}={value}" for key, value in options.items())])


def play_both(case: tuple[str, str, dict[str, Any]], seed: int, most_moves: int) -> Position:
    """One random game on both sides, compared at every ply; returns where it ended."""
    game, variant, options = case
    choose = random.Random(seed)
    position = Position(game, variant, chance="explicit", **options)
    reference = reference_of(game).Game(position.options)
    for _ in range(most_moves):
        assert position.text() == reference.text()
        assert position.is_over == reference.is_over
        assert position.winner == reference.winner
        assert position.reason == reference.reason
        assert position.margin == reference.margin
        if position.is_over:
            break
        assert position.to_move == reference.to_move
        if position.chance_due:
            outcomes = dict(position.chance_outcomes())
            expected = dict(reference.chance_outcomes())
            assert outcomes == pytest.approx(expected)
            value = choose.choices(list(outcomes), list(outcomes.values()))[0]
            position.apply_chance(value)
            reference.apply_chance(value)
            continue
        moves = position.legal_moves()
        assert reference.chance_outcomes() == []
        assert sorted(moves) == sorted(reference.legal_moves()), position.text()
        move = choose.choice(moves)
        position.push(move)
        reference.push(move)
    return position


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_random_games_agree_with_reference(case: tuple[str, str, dict[str, Any]]) -> None:
    wide = case_name(case).startswith(("petteia-box", "petteia-simple", "petteia-divination", "petteia-gambling"))
    for seed in range(2 if wide else 12):
        play_both(case, seed, most_moves=150 if wide else 400)


@pytest.mark.parametrize("case", CASES, ids=case_name)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**32), plies=st.integers(0, 60))
def test_positions_loaded_from_text_agree_with_reference(
    case: tuple[str, str, dict[str, Any]], seed: int, plies: int
) -> None:
    game, variant, options = case
    choose = random.Random(seed)
    position = Position(game, variant, chance="explicit", **options)
    for _ in range(plies):
        if position.is_over:
            break
        if position.chance_due:
            position.apply_chance(choose.choice(position.chance_outcomes())[0])
        else:
            position.push(choose.choice(position.legal_actions()))
    stakes_owed = position.chance_due and "stake" in position.ruleset.chance_kinds[position.rows[0][2] - 1].name
    if stakes_owed or position.reason in ("repetition", "stalled", "max_turns"):
        return  # what a text does not carry
    loaded = Position.from_text(game, position.text(), variant, chance="explicit", **options)
    reference = reference_of(game).Game.from_text(position.options, position.text())
    assert loaded.text() == position.text() == reference.text()
    assert (loaded.is_over, loaded.winner) == (position.is_over, position.winner)
    assert (loaded.is_over, loaded.winner, loaded.reason) == (reference.is_over, reference.winner, reference.reason)
    assert loaded.legal_moves() == position.legal_moves()
    assert sorted(loaded.legal_moves()) == sorted(reference.legal_moves())
    assert loaded.margin == position.margin


def test_every_option_meets_the_reference() -> None:
    for game in tg.games():
        for variant, options in tg.variants(game).items():
            assert (game, variant, {}) in CASES, options
