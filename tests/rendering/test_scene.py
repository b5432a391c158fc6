"""What is in a picture: legible, within the page, marked where it should be, the same height throughout a game."""

import itertools
import random

import pytest

from tests.rendering import layouts
from tradgames_env.position import Position
from tradgames_env.rendering import scene as palette
from tradgames_env.rendering.boards import spread_stations
from tradgames_env.rendering.picture import build_scene, changed_sites, headline
from tradgames_env.rendering.scene import WIDTH, Circle, Rect, Scene, Text, fit, text_width

_PANEL_BOTTOM = 66.0


def _texts(scene: Scene) -> list[str]:
    return [shape.text for shape in scene.shapes if isinstance(shape, Text)]


def _played(game: str, variant: str, moves: int) -> list[Position]:
    """The positions of one random game, up to a number of moves."""
    draw, position = random.Random(7), Position(game, variant, seed=3)
    positions = [position.copy()]
    while not position.is_over and len(positions) < moves:
        position.push(draw.choice(position.legal_actions()))
        positions.append(position.copy())
    return positions


def _box(text: Text) -> tuple[float, float, float, float]:
    width = text_width(text.text, text.size)
    left = text.x - {"start": 0.0, "middle": width / 2, "end": width}[text.anchor]
    return left, text.y - text.size / 2, left + width, text.y + text.size / 2


def _overlap(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def test_height_depends_on_the_ruleset_alone(game, variant):
    scenes = [build_scene(position) for position in _played(game, variant, 60)]
    assert len({scene.height for scene in scenes}) == 1


def test_texts_beside_the_board_do_not_overlap_and_stay_on_the_page(game, variant):
    for position in _played(game, variant, 60):
        scene = build_scene(position)
        below = scene.height - 82.0
        boxes = [_box(s) for s in scene.shapes if isinstance(s, Text) and not _PANEL_BOTTOM < s.y < below]
        assert all(box[0] >= 0 and box[2] <= WIDTH and box[1] >= 0 and box[3] <= scene.height for box in boxes)
        pairs = [(a, b) for i, a in enumerate(boxes) for b in boxes[:i]]
        assert not any(_overlap(a, b) for a, b in pairs), position.text()


def test_grid_has_files_and_ranks_from_its_names():
    texts = _texts(build_scene(Position("petteia", "simple", seed=1)))
    assert set("ABCDEFGHIJKL") | set("12345678") <= set(texts)


def test_grid_without_files_and_ranks_names_its_squares(sprint):
    assert "site 32" in _texts(build_scene(layouts.position_on(layouts.cross())))


def test_tall_boards_are_not_taller_than_a_screen(sprint):
    assert build_scene(layouts.position_on(layouts.grid(20, 3))).height < 800


def test_leader_wears_a_crown(sprint):
    layout = layouts.grid(2, 2)
    golds = [
        sum(isinstance(s, Circle) and s.stroke == palette.GOLD for s in build_scene(position).shapes)
        for position in (layouts.position_on(layout, {0: "o", 3: "x"}), layouts.position_on(layout, {0: "O", 3: "X"}))
    ]
    assert golds == [0, 2]


def _rows_of_labels(position: Position) -> list[list[str]]:
    """The labels on the board, row by row."""
    labels = [s for s in build_scene(position).shapes if isinstance(s, Text) and s.fill == palette.WOOD_INK]
    rows = sorted({label.y for label in labels})
    return [[s.text for s in sorted(labels, key=lambda s: s.x) if s.y == y] for y in rows]


def test_track_between_houses_counts_for_both_sides():
    natural = ["house", "1", "2", "3", "4", "5", "home"]
    assert _rows_of_labels(Position("puluc", "mini", seed=1)) == [natural[::-1], natural]


def test_track_without_houses_counts_once(sprint):
    assert _rows_of_labels(Position(sprint, seed=1)) == [["0", "1", "2", "3", "4"]]


def test_pile_shows_its_number_and_every_piece():
    position = Position.from_text("puluc", "-/-/-/-/-/xoxoxoxox/-/-/- 1 0 0 0 x 3")
    scene = build_scene(position)
    assert "9" in _texts(scene)
    discs = [s for s in scene.shapes if isinstance(s, Circle) and s.fill == palette.BLACK_FILL and s.stroke]
    natural = [s for s in scene.shapes if isinstance(s, Circle) and s.fill == palette.NATURAL_FILL and s.stroke]
    # five black and four natural in the pile, one natural in his house, a disc on each panel, one counted in the house
    assert (len(discs), len(natural)) == (6, 7)


def test_stations_on_straight_ways_are_evenly_spread():
    layout = Position("yut_nori", seed=1).ruleset.layout
    places = spread_stations(layout)
    rim = [places[site] for site in (0, 1, 2, 3, 4, 5)]
    gaps = [abs(a[0] - b[0]) for a, b in itertools.pairwise(rim)]
    assert gaps == pytest.approx([1.2] * 5)
    assert places[22] == (3.0, 3.0)


def test_bent_ways_keep_their_cells():
    layout = layouts.morris()
    assert spread_stations(layout) == [(float(row), float(column)) for row, column in layout.cells]


def test_junctions_have_a_double_ring():
    circles = [
        s for s in build_scene(Position("yut_nori", seed=1)).shapes
        if isinstance(s, Circle) and s.fill == palette.WOOD_DARK
    ]  # fmt: skip
    assert len(circles) == 5


@pytest.mark.parametrize(("name", "label"), [("petteia", "D"), ("puluc", "3"), ("yut_nori", "3")])
def test_last_move_tints_the_right_site(name, label):
    scene = build_scene(Position(name, seed=1), last_move=(3,))
    tint = next(s for s in _round(scene) if s.fill == palette.LAST_MOVE_TINT)
    middle = tint.x + (tint.width / 2 if isinstance(tint, Rect) else 0.0)
    assert middle in [pytest.approx(s.x) for s in scene.shapes if isinstance(s, Text) and s.text == label]


@pytest.mark.parametrize("name", ["petteia", "puluc", "yut_nori"])
def test_marks_are_drawn_where_asked(name):
    position = Position(name, seed=1)
    plain = build_scene(position)
    marked = build_scene(position, last_move=(3,))
    assert sum(getattr(s, "fill", None) == palette.LAST_MOVE_TINT for s in marked.shapes) == 1
    assert plain != marked
    assert sum(palette.TARGET in (s.fill, s.stroke) for s in _round(build_scene(position, targets=(3, 4)))) == 2
    assert "42%" in _texts(build_scene(position, annotations={5: "42%"}))
    assert marked.height == plain.height


def test_changed_sites_are_those_a_move_touches():
    position = Position.from_text("petteia", "xx4xx/8/3o4/3x4/1ox1xo2/8/8/3o4 o 0 -")
    before = position.copy()
    assert changed_sites(before, position) == ()
    position.push("D1 -> D4")
    names = position.ruleset.layout.names
    assert [names[site] for site in changed_sites(before, position)] == ["D1", "C4", "D4", "E4", "D5"]


def _round(scene: Scene) -> list[Circle | Rect]:
    return [shape for shape in scene.shapes if isinstance(shape, Circle | Rect)]


@pytest.mark.parametrize(
    ("marks", "message"),
    [
        ({"last_move": (0, 64)}, "last_move names site 64; petteia has sites 0 to 63"),
        ({"targets": (-1,)}, "targets names site -1"),
        ({"annotations": {99: "x"}}, "annotations names site 99"),
    ],
)
def test_marks_off_the_board_are_refused(marks, message):
    with pytest.raises(ValueError, match=message):
        build_scene(Position("petteia"), **marks)


def test_unknown_style_is_refused(sprint):
    layout = layouts.BoardLayout(1, 1, ((0, 0),), ("A1",), "hexagons")
    with pytest.raises(ValueError, match="no drawing for layout style 'hexagons'; known: grid, track, graph"):
        build_scene(layouts.position_on(layout))


@pytest.mark.parametrize(
    ("name", "text", "options", "words"),
    [
        ("petteia", "xxxxxxxx/8/8/8/8/8/8/oooooooo x 0 -", {}, "Black to move"),
        ("yut_nori", "h:4 3:1,w:3 x -", {}, "Natural wins (home)"),
        ("yote", "6/6/2ox2/6/6 o 0 0 100 - - -", {}, "Draw (quiet)"),
        ("puluc", "-/-/-/-/-/-/-/-/- 5 5 0 0 o -", {"chance": "explicit"}, "Throw due"),
    ],
)
def test_headline(name, text, options, words):
    position = Position.from_text(name, text, **options)
    assert headline(position) == words
    assert build_scene(position).title.endswith(words)


def test_stopped_game_says_so():
    position = Position("petteia", max_turns=1)
    position.push("A1 -> A2")
    assert headline(position) == "Stopped (max turns)"
    assert headline(position) in _texts(build_scene(position))


def test_winner_is_badged_and_nobody_in_a_draw():
    won = _texts(build_scene(Position.from_text("yut_nori", "h:4 3:1,w:3 x -")))
    drawn = _texts(build_scene(Position.from_text("yote", "6/6/2ox2/6/6 o 0 0 100 - - -")))
    assert won.count("won") == 1
    assert not {"won", "to move"} & set(drawn)


def test_every_throw_in_hand_is_a_tile_and_partners_are_told_apart():
    texts = _texts(build_scene(Position.from_text("yut_nori", "w:4 w:4 o 5+2", "traditional")))
    assert texts.count("to move") == 1
    assert {"5", "2"} <= set(texts[texts.index("to move") :])
    assert "to move, partner 1" in _texts(build_scene(Position("yut_nori", "teams", seed=1)))


def test_first_player_due_belongs_to_neither_side():
    texts = _texts(build_scene(Position("yut_nori", chance="explicit")))
    assert "First player due" in texts
    assert not any("due" in text for text in texts if text != "First player due")


def test_fifth_game_is_drawn_without_editing(sprint):
    texts = _texts(build_scene(Position(sprint, seed=1)))
    assert "Sprint · box" in texts


def test_long_status_shrinks_instead_of_running_off(sprint):
    status = {"natural reserve": "40", "natural note": "words that go on " * 6, "phase": "late " * 20}
    scene = build_scene(layouts.position_on(layouts.two_rows(), {0: "ooox"}, status))
    assert all(_box(shape)[2] <= WIDTH for shape in scene.shapes if isinstance(shape, Text))


def test_fit_shrinks_only_what_is_too_wide():
    assert fit("AB", 10.0, 100.0) == 10.0
    assert text_width("ABCDEF", fit("ABCDEF", 10.0, 20.0)) == pytest.approx(20.0)


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize(
    ("one", "other", "least"),
    [
        ("NATURAL_FILL", "BLACK_FILL", 10.0),
        ("NATURAL_FILL", "NATURAL_EDGE", 7.0),
        ("BLACK_FILL", "WOOD", 5.0),
        ("ACCENT", "WOOD", 3.0),
        ("TARGET", "WOOD", 3.0),
        ("INK", "PANEL", 7.0),
        ("FAINT_INK", "PAGE", 4.5),
        ("FRAME_INK", "FRAME", 4.5),
        ("WOOD_INK", "WOOD_LIGHT", 4.5),
        ("PANEL_ACTIVE", "ACCENT", 4.5),
    ],
)
def test_colours_differ_in_lightness(one, other, least):
    """The contrast ratio of WCAG, which is the same to colour-blind eyes."""
    bright, dark = sorted((_luminance(getattr(palette, one)), _luminance(getattr(palette, other))), reverse=True)
    assert (bright + 0.05) / (dark + 0.05) >= least
