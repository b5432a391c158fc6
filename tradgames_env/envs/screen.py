"""What the environments have in common when they draw themselves."""

from typing import Any

import gymnasium

from tradgames_env.position import Position

RENDER_MODES = ("human", "ansi", "rgb_array")


class Screen:
    """Draws positions as a render mode asks, with the last move marked; drawing libraries are imported when needed.

    Args:
        render_mode: "human" (a window), "ansi" (text), "rgb_array" or None.

    Raises:
        ValueError: there is no such render mode.
    """

    def __init__(self, render_mode: str | None) -> None:
        if render_mode is not None and render_mode not in RENDER_MODES:
            raise ValueError(f"render_mode must be None or one of {', '.join(RENDER_MODES)}, not {render_mode!r}")
        self.render_mode = render_mode
        self._before: Position | None = None
        self._window: Any = None

    def before_move(self, position: Position) -> None:
        """Remember a position that is about to change, so that the move can be marked."""
        if self.render_mode in ("human", "rgb_array"):
            self._before = position.copy()
            self._before.clear_stack()

    def forget_move(self) -> None:
        """A new game starts: there is no last move."""
        self._before = None

    def show(self, position: Position) -> Any:
        """Text, a (H, W, 3) uint8 array, or None after drawing the window."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() was called but no render_mode was given, e.g. render_mode='ansi'")
            return None
        if self.render_mode == "ansi":
            return str(position)
        from tradgames_env import rendering

        last_move = None if self._before is None else rendering.changed_sites(self._before, position)
        if self.render_mode == "rgb_array":
            return rendering.image(position, last_move=last_move)
        if self._window is None:
            self._window = rendering.Window()
        self._window.show(position, last_move=last_move)
        return None

    def close(self) -> None:
        """Close the window, if one is open."""
        if self._window is not None:
            self._window.close()
            self._window = None

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the window, which belongs to this process."""
        return {**self.__dict__, "_window": None}
