"""The public functions: SVG that parses, pixels of the right shape, files by suffix, a window without a screen."""

import copy
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.rendering import layouts
from tradgames_env import rendering
from tradgames_env.position import Position

_SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def dummy_screen(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    pygame = pytest.importorskip("pygame")
    yield pygame
    pygame.display.quit()


def test_svg_is_valid_and_describes_itself(game, variant):
    position = Position(game, variant, seed=1)
    root = ElementTree.fromstring(rendering.svg(position, size=320))
    assert root.tag == f"{_SVG}svg"
    assert root.get("width") == "320"
    assert root.find(f"{_SVG}desc").text == position.text()


def test_svg_escapes_text(sprint):
    words = "<b>&\"'\x00]]>"
    position = layouts.position_on(layouts.two_rows(), {}, {"phase": words, "natural <x>": "<y>"})
    root = ElementTree.fromstring(rendering.svg(position, annotations={0: words}))
    texts = [element.text for element in root.iter(f"{_SVG}text")]
    assert "<b>&\"' ]]>" in texts
    assert "<y>" in texts


def test_image_has_the_shape_asked_for(game, variant):
    pixels = rendering.image(Position(game, variant, seed=1), size=401)
    assert pixels.dtype == np.uint8
    assert pixels.ndim == 3
    assert pixels.shape[1:] == (401, 3)
    assert pixels.shape[0] % 2 == 0
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 50
    assert (pixels[-1] == (0xF7, 0xF2, 0xE8)).all()


def test_image_and_svg_agree_in_size_and_colour():
    position = Position("petteia", seed=1)
    root = ElementTree.fromstring(rendering.svg(position, size=480))
    pixels = rendering.image(position, size=480)
    assert pixels.shape[:2] == (int(root.get("height")), int(root.get("width")))
    assert tuple(pixels[0, 0]) == tuple(pixels[-1, -1]) == (0xF7, 0xF2, 0xE8)


def test_picture_changes_with_the_position_and_not_without(game):
    position = Position(game, seed=1)
    before, same = rendering.image(position), rendering.image(position.copy())
    position.push(position.legal_actions()[0])
    assert np.array_equal(before, same)
    assert not np.array_equal(before, rendering.image(position))


def test_images_do_not_share_memory():
    position = Position("yote")
    first = rendering.image(position)
    first[:] = 0
    assert rendering.image(position).any()


def test_pieces_have_smooth_edges():
    """Where nothing but a natural piece is drawn there are many shades between its colours and the wood."""
    pixels = rendering.image(Position("petteia", "mini"), size=480)
    row, column = pixels.shape[0] - 160, 64
    assert len(np.unique(pixels[row - 30 : row + 30, column : column + 80, 0])) > 30


@pytest.mark.parametrize("layout", [layouts.cross(), layouts.two_rows(), layouts.morris(), layouts.grid(3, 26)])
def test_boards_that_no_game_has_are_drawn(sprint, layout):
    position = layouts.position_on(layout, {0: "ooxO", 5: "X", 7: "x"}, {"natural reserve": "3"})
    marks = {"last_move": (1, 5), "targets": (0, 2), "annotations": {7: "9%"}}
    ElementTree.fromstring(rendering.svg(position, **marks))
    assert rendering.image(position, size=200, **marks).shape[1] == 200


@pytest.mark.parametrize("size", [63, 4097, 480.0, True, "480"])
def test_sizes_without_reason_are_refused(size):
    position = Position("yote")
    for draw in (rendering.svg, rendering.image):
        with pytest.raises(ValueError, match="size must be an integer from 64 to 4096"):
            draw(position, size=size)


def test_save_by_suffix(tmp_path):
    position = Position("puluc", seed=1)
    for name in ("a.svg", "a.png", "a.txt", "B.PNG"):
        rendering.save(position, tmp_path / name)
    assert (tmp_path / "a.svg").read_text(encoding="utf-8") == rendering.svg(position)
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == f"{position}\n"
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "B.PNG").read_bytes()
    image = pytest.importorskip("PIL.Image")
    with image.open(tmp_path / "a.png") as saved:
        assert np.array_equal(np.array(saved), rendering.image(position))


@pytest.mark.parametrize("name", ["a.gif", "a", "svg"])
def test_other_suffixes_are_refused_before_anything_is_written(tmp_path, name):
    with pytest.raises(ValueError, match=r"the name must end in \.svg, \.png, \.txt"):
        rendering.save(Position("yote"), tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_window_shows_the_picture_and_closes_twice(dummy_screen):
    window, position = rendering.Window(size=300), Position("yut_nori", seed=1)
    window.show(position, targets=(3,))
    shown = dummy_screen.surfarray.array3d(dummy_screen.display.get_surface()).swapaxes(0, 1)
    assert np.array_equal(shown, rendering.image(position, size=300, targets=(3,)))
    window.show(Position("puluc", seed=1))
    assert dummy_screen.display.get_surface().get_height() == rendering.image(Position("puluc"), size=300).shape[0]
    window.close()
    window.close()
    assert not dummy_screen.display.get_init()


def test_window_that_was_never_opened_closes():
    window = rendering.Window()
    window.close()
    assert not window.is_open


def test_window_closed_by_a_person_stays_closed(dummy_screen):
    window, position = rendering.Window(), Position("yote")
    window.show(position)
    dummy_screen.event.post(dummy_screen.event.Event(dummy_screen.QUIT))
    window.show(position)
    assert not window.is_open
    window.show(position)
    assert not dummy_screen.display.get_init()


def test_window_can_be_copied_while_it_is_shown(dummy_screen):
    window = rendering.Window()
    window.show(Position("yote"))
    assert copy.deepcopy(window).is_open


def test_no_screen_is_a_clear_error(monkeypatch):
    pytest.importorskip("pygame").display.quit()
    monkeypatch.setenv("SDL_VIDEODRIVER", "no_such_driver")
    with pytest.raises(RuntimeError, match=r"cannot open a window .* use render_mode='rgb_array' or 'ansi'"):
        rendering.Window().show(Position("yote"))


@pytest.mark.parametrize(("module", "needs"), [("PIL", "Pillow"), ("pygame", "pygame-ce")])
def test_missing_libraries_are_named_and_svg_needs_none(monkeypatch, module, needs):
    monkeypatch.setitem(sys.modules, module, None)
    position = Position("yote")
    assert rendering.svg(position)
    with pytest.raises(ImportError, match=f"{needs}: pip install"):
        rendering.Window().show(position)


def test_importing_loads_no_drawing_library():
    code = "import sys, tradgames_env.rendering; print([m for m in ('PIL', 'pygame', 'torch') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
