"""A window on a game, by pygame-ce, which is imported when the first picture is shown."""

import os
from typing import Any, Unpack

from tradgames_env.position import Position
from tradgames_env.rendering.image import scene_to_array
from tradgames_env.rendering.picture import build_scene
from tradgames_env.rendering.scene import Marks


class Window:
    """Shows positions on the screen without waiting for anybody.

    A person may close the window; it then stays closed and ``show`` does nothing. pygame has one window a process, so
    two of these, or a copy, share it. It holds nothing of pygame, so that an environment which has one can be copied
    and pickled.

    Args:
        size: width of the picture in pixels.
    """

    def __init__(self, size: int = 480) -> None:
        self.size = size
        self.is_open = True
        self._shown = False

    def show(self, position: Position, **marks: Unpack[Marks]) -> None:
        """Draw a position, opening the window if need be.

        Raises:
            ImportError: pygame or Pillow is not installed.
            RuntimeError: there is no screen.
            ValueError: a mark names a site that the board does not have.
        """
        if not self.is_open:
            return
        scene = build_scene(position, **marks)
        pixels = scene_to_array(scene, self.size)
        pygame = _import_pygame()
        screen = _screen(pygame, (pixels.shape[1], pixels.shape[0]))
        self._shown = True
        pygame.display.set_caption(scene.title)
        pygame.surfarray.blit_array(screen, pixels.swapaxes(0, 1))
        pygame.display.flip()
        if any(event.type == pygame.QUIT for event in pygame.event.get()):
            self.close()

    def close(self) -> None:
        """Close the window for good; harmless when it is closed or was never opened."""
        self.is_open = False
        if self._shown:
            self._shown = False
            _import_pygame().display.quit()


def _import_pygame() -> Any:
    # Its greeting would mix with what a command prints.
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    try:
        import pygame
    except ImportError as error:
        raise ImportError("a window needs pygame-ce: pip install 'tradgames-env[render]'") from error
    return pygame


def _screen(pygame: Any, size: tuple[int, int]) -> Any:
    """The one window, opened or made as large as ``size``."""
    try:
        pygame.display.init()
        screen = pygame.display.get_surface()
        return screen if screen is not None and screen.get_size() == size else pygame.display.set_mode(size)
    except pygame.error as error:
        raise RuntimeError(
            f"cannot open a window ({error}); without a screen use render_mode='rgb_array' or 'ansi'"
        ) from error
