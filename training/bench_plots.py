"""The pictures of ``tradgames bench``: how cost grows, and the package beside other libraries."""

import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

_INK, _FAINT, _GRID = "#2a241e", "#6b5d4d", "#e0d5c1"
_COLOURS = ("#0b62a8", "#bf5b2c", "#3d8b57", "#8a5aa3", "#a08000", "#444444")
_OURS, _THEIRS = "#0b62a8", "#b9ab94"
_STYLE = {
    "axes.edgecolor": _FAINT,
    "axes.labelcolor": _INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 13,
    "axes.titleweight": "bold",
    "figure.facecolor": "white",
    "font.family": ["DejaVu Sans"],
    "font.size": 10.5,
    "grid.color": _GRID,
    "svg.hashsalt": "tradgames",
    "text.color": _INK,
    "xtick.color": _FAINT,
    "ytick.color": _FAINT,
}
_SIZE = (7.6, 4.4)
_ROW_HEIGHT = 0.3
_KINDS = ("playouts", "batch", "batch, 2 cores", "batch, all cores", "position, ids", "env")
_KIND_WORDS = {
    "playouts": "playouts, one core",
    "batch": "batch with observations, one core",
    "batch, 2 cores": "batch with observations, 2 cores",
    "batch, all cores": "batch with observations, all cores",
    "position, ids": "one game from Python",
    "env": "PettingZoo env()",
}

Points = Sequence[Mapping[str, Any]]


class _Curves(NamedTuple):
    """A picture of one curve of ``bench_growth``."""

    curve: str
    title: str
    across: str
    up: str


_CURVES = {
    "batch": _Curves("batch", "Speed against batch size, one core", "games in the batch", "moves per second"),
    "board": _Curves("board, playouts", "Speed against board size, one core", "squares a side", "moves per second"),
    "threads": _Curves("threads", "Speed-up by threads", "threads", "times the speed of one thread"),
    "memory": _Curves("memory", "Memory against batch size", "games in the batch", "bytes allocated"),
}


def draw(result: Mapping[str, Any], folder: pathlib.Path, prefix: str = "bench_") -> list[pathlib.Path]:
    """Draw every picture that the figures give, and return the files.

    Args:
        result: what ``tradgames bench --json`` writes.
        folder: made if missing; gets ``<prefix>batch.svg``, ``board``, ``threads``, ``memory``, ``peers``.
        prefix: of the names of the files.

    Raises:
        OSError: a file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    painters: dict[str, Callable[[], Picture | None]] = {
        "batch": lambda: _batch(result["growth"]),
        "board": lambda: _board(result["growth"]),
        "threads": lambda: _threads(result["growth"]),
        "memory": lambda: _memory(result["growth"]),
        "peers": lambda: _peers(result["figures"]),
    }
    drawn = []
    with mpl.rc_context(_STYLE):  # type: ignore[arg-type]
        for name, paint in painters.items():
            picture = paint()
            if picture is None:
                continue
            path = folder / f"{prefix}{name}.svg"
            picture.savefig(path, metadata={"Date": None, "Creator": None})
            drawn.append(path)
    return drawn


def _blank(words: _Curves) -> tuple[Picture, Axes]:
    picture = Picture(figsize=_SIZE, layout="constrained")
    axes = picture.add_subplot()
    axes.set_title(words.title, pad=12)
    axes.set_xlabel(words.across)
    axes.set_ylabel(words.up)
    axes.grid(visible=True, linewidth=0.8)
    axes.set_axisbelow(True)
    return picture, axes


def _lines(points: Points, curve: str) -> dict[str, list[Mapping[str, Any]]]:
    """The points of a curve by game, in ascending order."""
    lines: dict[str, list[Mapping[str, Any]]] = {}
    for point in sorted((p for p in points if p["curve"] == curve), key=lambda p: p["x"]):
        lines.setdefault(point["game"], []).append(point)
    return dict(sorted(lines.items()))


def _plot(axes: Axes, line: Points, index: int, **style: Any) -> None:
    x = [point["x"] for point in line]
    options = {"color": _COLOURS[index % len(_COLOURS)], "marker": "o", "markersize": 4.5, "linewidth": 2, **style}
    axes.plot(x, [point["value"] for point in line], **options)
    axes.fill_between(
        x, [p["lowest"] for p in line], [p["highest"] for p in line], color=options["color"], alpha=0.12, linewidth=0
    )


def _label_ends(axes: Axes, ends: Sequence[tuple[float, float, str, str]]) -> None:
    """Name lines where they end, pushed apart where they end close together.

    Args:
        axes: with its final limits and scales.
        ends: (x, y, name, colour).
    """
    to_pixels, height = axes.transData, axes.figure.bbox.height
    gap, last = height * 0.045, float("-inf")
    for x, y, name, colour in sorted(ends, key=lambda end: end[1]):
        at = to_pixels.transform((x, y))
        shifted = max(at[1], last + gap)
        last = shifted
        points = 72 / axes.figure.dpi
        axes.annotate(
            name, (x, y), xytext=(9, (shifted - at[1]) * points), textcoords="offset points",
            color=colour, va="center", fontsize=10.5, annotation_clip=False,
        )  # fmt: skip


def _finish(axes: Axes, lines: Mapping[str, Points], words: Callable[[str], str] = str) -> None:
    """Room at the right, and a name at the end of every line."""
    ends = [
        (line[-1]["x"], line[-1]["value"], words(game), _COLOURS[index % len(_COLOURS)])
        for index, (game, line) in enumerate(lines.items())
    ]
    _label_ends(axes, ends)


def _short(value: float, _position: object = None) -> str:
    """1,500,000 as 1.5 M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g} {letter}"
    return f"{value:g}"


def _bytes(value: float, _position: object = None) -> str:
    """2**20 as 1 MiB."""
    for size, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if value >= size:
            return f"{value / size:g} {unit}"
    return f"{value:g} B"


def _by_batch(points: Points, name: str) -> tuple[Picture, Axes, dict[str, list[Mapping[str, Any]]]] | None:
    words = _CURVES[name]
    lines = _lines(points, words.curve)
    if not lines:
        return None
    picture, axes = _blank(words)
    for index, line in enumerate(lines.values()):
        _plot(axes, line, index)
    batches = sorted({point["x"] for line in lines.values() for point in line})
    axes.set_xscale("log", base=2)
    axes.set_xticks(batches, [f"{batch:,}" for batch in batches])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(batches[0] * 0.8, batches[-1] * 1.2)
    return picture, axes, lines


def _batch(points: Points) -> Picture | None:
    made = _by_batch(points, "batch")
    if made is None:
        return None
    picture, axes, lines = made
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(_short))
    axes.yaxis.set_minor_formatter(NullFormatter())
    _finish(axes, lines)
    return picture


def _memory(points: Points) -> Picture | None:
    made = _by_batch(points, "memory")
    if made is None:
        return None
    picture, axes, lines = made
    axes.set_yscale("log", base=2)
    lowest = min(point["value"] for line in lines.values() for point in line)
    highest = max(point["value"] for line in lines.values() for point in line)
    ticks = [2.0**power for power in range(0, 60, 4) if lowest / 16 < 2.0**power < highest * 2]
    axes.set_yticks(ticks)
    axes.yaxis.set_major_formatter(FuncFormatter(_bytes))
    axes.yaxis.set_minor_locator(NullLocator())
    _finish(axes, lines)
    return picture


def _threads(points: Points) -> Picture | None:
    words = _CURVES["threads"]
    lines = {
        game: [{**p, **{key: p[key] / line[0]["value"] for key in ("value", "lowest", "highest")}} for p in line]
        for game, line in _lines(points, words.curve).items()
        if line[0]["x"] == 1
    }
    counts = sorted({point["x"] for line in lines.values() for point in line})
    if len(counts) < 2:
        return None
    picture, axes = _blank(words)
    axes.plot(counts, counts, color=_FAINT, linewidth=1.2, linestyle=(0, (4, 3)))
    for index, line in enumerate(lines.values()):
        _plot(axes, line, index)
    axes.set_xticks(counts)
    axes.set_xlim(counts[0] - 0.02 * counts[-1], counts[-1] * 1.01)
    axes.set_ylim(0, counts[-1] * 1.08)
    axes.annotate("as many times as threads", (counts[-1], counts[-1]), xytext=(-8, 0), textcoords="offset points",
                  ha="right", va="bottom", color=_FAINT)  # fmt: skip
    _finish(axes, lines)
    return picture


def _board(points: Points) -> Picture | None:
    words = _CURVES["board"]
    inner, outer = _lines(points, "board, playouts"), _lines(points, "board, steps")
    if not inner:
        return None
    picture, axes = _blank(words)
    ends = []
    for index, game in enumerate(inner):
        colour = _COLOURS[index % len(_COLOURS)]
        for lines, name, style in ((inner, "playouts", "-"), (outer, "steps", (0, (4, 2)))):
            _plot(axes, lines[game], index, linestyle=style)
            last = lines[game][-1]
            ends.append((last["x"], last["value"], f"{game}, {name}", colour))
    sizes = sorted({point["x"] for line in inner.values() for point in line})
    axes.set_xticks(sizes, [f"{size} × {size}" for size in sizes])
    axes.set_xlabel("board")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(_short))
    axes.yaxis.set_minor_formatter(NullFormatter())
    _label_ends(axes, ends)
    return picture


def _peers(figures: Points) -> Picture | None:
    """Bars of the other libraries and of ours, in groups of the same kind of work."""
    kinds = {
        figure["baseline"].partition(": ")[0] for figure in figures if figure["topic"] == "peers" and figure["baseline"]
    }
    groups = [(kind, _bars(figures, kind)) for kind in _KINDS if kind in kinds]
    if not groups:
        return None
    rows = sum(len(bars) + 1 for _, bars in groups)
    picture = Picture(figsize=(8.6, _ROW_HEIGHT * rows + 1.2), layout="constrained")
    axes = picture.add_subplot()
    axes.set_title("Random moves per second beside other libraries", pad=12)
    at, ticks = 0, []
    for kind, bars in groups:
        axes.text(0, at, _KIND_WORDS[kind], transform=axes.get_yaxis_transform(), weight="bold", va="center")
        at += 1
        for name, value, is_ours in sorted(bars, key=lambda bar: -bar[1]):
            axes.barh(at, value, height=0.72, color=_OURS if is_ours else _THEIRS)
            axes.text(value * 1.08, at, _short(float(f"{value:.2g}")), va="center", fontsize=9.5)
            ticks.append((at, name))
            at += 1
    axes.set_yticks([place for place, _ in ticks], [name for _, name in ticks])
    axes.tick_params(axis="y", length=0, labelcolor=_INK)
    axes.set_xscale("log")
    values = [bar[1] for _, bars in groups for bar in bars]
    axes.set_xlim(min(values) / 4, max(values) * 3)
    axes.set_ylim(at - 0.4, -0.7)
    axes.xaxis.set_major_formatter(FuncFormatter(_short))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(visible=True, axis="x", linewidth=0.8)
    axes.set_axisbelow(True)
    return picture


def _bars(figures: Points, kind: str) -> list[tuple[str, float, bool]]:
    """(name, moves a second, is ours) of one kind of work."""
    ours = [(f["subject"], f["value"], True) for f in figures if f["topic"] == kind and "," not in f["subject"]
            and not f["subject"].startswith(("PettingZoo", "python-chess"))]  # fmt: skip
    theirs = [
        (f["subject"].partition(":")[0], f["value"], False)
        for f in figures
        if f["topic"] == "peers" and (f["baseline"] or "").partition(": ")[0] == kind
    ]
    beside = {"env": "PettingZoo connect_four_v3", "position, ids": "python-chess"}.get(kind)
    topics = {"env": "env", "position, ids": "position"}
    theirs += [(f["subject"], f["value"], False) for f in figures
               if beside and f["subject"] == beside and f["topic"] == topics[kind]]  # fmt: skip
    return ours + theirs
