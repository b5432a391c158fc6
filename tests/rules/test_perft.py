"""Move counts against the perft files, and the smaller ones against the reference again."""

import pytest

import tradgames_env as tg
from tests.rules.perft_file import PerftLine, count_by_reference, read

CASES = [(game, line) for game in tg.games() for line in read(game)]


def line_name(value: object) -> str:
    return f"{value.case}-{value.depth}" if isinstance(value, PerftLine) else str(value)


@pytest.mark.parametrize(("name", "line"), CASES, ids=line_name)
def test_perft(name: str, line: PerftLine) -> None:
    assert tg.perft(name, line.depth, line.variant, **line.options) == line.count


@pytest.mark.parametrize(("name", "line"), [case for case in CASES if case[1].count <= 3_000], ids=line_name)
def test_perft_of_the_reference(name: str, line: PerftLine) -> None:
    assert count_by_reference(name, line) == line.count


def test_every_variant_has_perft_lines(game: str) -> None:
    assert set(tg.variants(game)) <= {line.variant for line in read(game)}


def test_petteia_box_to_depth_four() -> None:
    """Two programs independent of this project agree on these counts."""
    assert [tg.perft("petteia", depth) for depth in (0, 1, 2, 3, 4)] == [1, 48, 2_136, 112_874, 5_673_664]


def test_perft_of_a_finished_game_is_zero() -> None:
    over = "xx6/oo6/8/8/8/8/8/2o5 x 0 -"
    assert tg.Position.from_text("petteia", over).legal_moves() != []
    blocked = "xxo5/oo6/8/8/8/8/8/8 x 0 -"
    assert tg.Position.from_text("petteia", blocked).is_over
    assert tg.perft("petteia", 1, text=blocked) == 0


def test_negative_depth_is_refused() -> None:
    with pytest.raises(ValueError, match="depth must be an integer of at least 0, not -1"):
        tg.perft("petteia", -1)
