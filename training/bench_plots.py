"""The pictures of ``tradgames bench``: how cost grows, and the package beside other libraries."""

import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

INK, FAINT, GRID = "#2a241e", "#6b5d4d", "#e0d5c1"
COLOURS = ("#0b62a8", "#bf5b2c", "#3d8b57", "#8a5aa3", "#a08000", "#444444")
_OURS, _THEIRS = "#0b62a8", "#b9ab94"
STYLE = {
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 13,
    "axes.titleweight": "bold",
    "figure.facecolor": "white",
    "font.family": ["DejaVu Sans"],
    "font.size": 10.5,
    "grid.color": GRID,
    "svg.hashsalt": "tradgames",
    "text.color": INK,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
}
_SIZE = (7.6, 4.4)
_ROW_HEIGHT = 0.3
_KINDS = ("playouts", "batch", "batch, 2 cores", "batch, all cores", "position, observed", "env")
_KIND_WORDS = {
    "playouts": "playouts, one core",
    "batch": "batch with observations, one core",
    "batch, 2 cores": "batch with observations, 2 cores",
    "batch, all cores": "batch with observations, all cores",
    "position, observed": "one game from Python with observation, one core",
    "env": "PettingZoo env() with observation, one core",
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
    "board": _Curves("board, playouts", "Speed against board size, one core", "board", "moves per second"),
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
    return save(painters, folder, prefix)


def save(painters: Mapping[str, Callable[[], Picture | None]], folder: pathlib.Path, prefix: str) -> list[pathlib.Path]:
    """Write what each painter makes to ``<prefix><name>.svg``, the same bytes every time, and return the files.

    Raises:
        OSError: a file cannot be written.
    """
    drawn = []
    with mpl.rc_context(STYLE):  # type: ignore[arg-type]
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


def _colours(points: Points) -> dict[str, str]:
    """A game has the same colour in every picture."""
    games = sorted({point["game"] for point in points})
    return {game: COLOURS[index % len(COLOURS)] for index, game in enumerate(games)}


def _plot(axes: Axes, line: Points, colour: str, style: Any = "-") -> None:
    x = [point["x"] for point in line]
    axes.plot(x, [p["value"] for p in line], color=colour, linestyle=style, marker="o", markersize=4.5, linewidth=2)
    axes.fill_between(
        x, [p["lowest"] for p in line], [p["highest"] for p in line], color=colour, alpha=0.12, linewidth=0
    )


def _name_ends(axes: Axes, ends: Sequence[tuple[Mapping[str, Any], str, str]]) -> None:
    """Name lines where they end, pushed apart where they end close together.

    A line that ends before others is named below its end: beside it the others go on.

    Args:
        axes: with its final limits and scales.
        ends: (last point, name, colour) of each line.
    """
    picture = axes.get_figure()
    assert picture is not None
    farthest = max(point["x"] for point, *_ in ends)
    for point, name, colour in ends:
        if point["x"] < farthest:
            axes.annotate(
                name, (point["x"], point["value"]), xytext=(4, -9), textcoords="offset points", color=colour,
                ha="right", va="top",
            )  # fmt: skip
    last = [end for end in ends if end[0]["x"] == farthest]
    places = sorted(
        ((axes.transData.transform((p["x"], p["value"]))[1], p, *rest) for p, *rest in last), key=lambda e: e[0]
    )
    heights = _apart([place[0] for place in places], gap=picture.bbox.height * 0.045)
    for (true, point, name, colour), height in zip(places, heights, strict=True):
        axes.annotate(
            name, (point["x"], point["value"]), xytext=(9, (height - true) * 72 / picture.dpi),
            textcoords="offset points", color=colour, va="center", annotation_clip=False,
        )  # fmt: skip


def _apart(heights: Sequence[float], gap: float) -> list[float]:
    """Ascending heights moved as little as it takes to be ``gap`` apart: those too close spread about their mean."""
    # (sum of the heights as if each stood at the group's lowest place, members)
    groups: list[tuple[float, int]] = []
    for height in heights:
        total, members = height, 1
        while groups and total / members < groups[-1][0] / groups[-1][1] + gap * groups[-1][1]:
            before, count = groups.pop()
            total, members = before + total - gap * count * members, members + count
        groups.append((total, members))
    return [total / members + gap * place for total, members in groups for place in range(members)]


def _log_ticks(axes: Axes) -> None:
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    # Few powers of ten in sight need the steps between them.
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high / low < 300 else (1.0,)))
    axes.yaxis.set_major_formatter(FuncFormatter(_short))
    axes.yaxis.set_minor_formatter(NullFormatter())


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


def _by_batch(points: Points, name: str) -> tuple[Picture, Axes, Callable[[], None]] | None:
    """Lines over the batch size, and what names them once the scales are final."""
    words = _CURVES[name]
    lines = _lines(points, words.curve)
    if not lines:
        return None
    picture, axes = _blank(words)
    colours = _colours(points)
    for game, line in lines.items():
        _plot(axes, line, colours[game])
    batches = sorted({point["x"] for line in lines.values() for point in line})
    axes.set_xscale("log", base=2)
    axes.set_xticks(batches, [f"{batch:,}" for batch in batches])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(batches[0] * 0.8, batches[-1] * 1.2)
    return picture, axes, lambda: _name_ends(axes, [(line[-1], game, colours[game]) for game, line in lines.items()])


def _batch(points: Points) -> Picture | None:
    made = _by_batch(points, "batch")
    if made is None:
        return None
    picture, axes, name_lines = made
    _log_ticks(axes)
    name_lines()
    return picture


def _memory(points: Points) -> Picture | None:
    made = _by_batch(points, "memory")
    if made is None:
        return None
    picture, axes, name_lines = made
    axes.set_yscale("log", base=2)
    low, high = axes.get_ylim()
    axes.set_yticks([2.0**power for power in range(0, 60, 4) if low < 2.0**power < high])
    axes.yaxis.set_major_formatter(FuncFormatter(_bytes))
    axes.yaxis.set_minor_locator(NullLocator())
    name_lines()
    return picture


def _threads(points: Points) -> Picture | None:
    lines = {
        game: [{**p, **{key: p[key] / line[0]["value"] for key in ("value", "lowest", "highest")}} for p in line]
        for game, line in _lines(points, "threads").items()
    }
    counts = sorted({point["x"] for line in lines.values() for point in line})
    if len(counts) < 2:
        return None
    picture, axes = _blank(_CURVES["threads"])
    colours = _colours(points)
    axes.plot(counts, counts, color=FAINT, linewidth=1.2, linestyle=(0, (4, 3)))
    for game, line in lines.items():
        _plot(axes, line, colours[game])
    axes.set_xticks(counts)
    axes.set_ylim(0, 1.08 * max(counts[-1], *(point["value"] for line in lines.values() for point in line)))
    ideal = ({"x": counts[-1], "value": counts[-1]}, "ideal", FAINT)
    _name_ends(axes, [ideal, *((line[-1], game, colours[game]) for game, line in lines.items())])
    return picture


def _board(points: Points) -> Picture | None:
    kinds = {
        "playouts": (_lines(points, "board, playouts"), "-"),
        "steps": (_lines(points, "board, steps"), (0, (4, 2))),
    }
    if not any(lines for lines, _ in kinds.values()):
        return None
    picture, axes = _blank(_CURVES["board"])
    colours = _colours(points)
    ends = []
    for kind, (lines, style) in kinds.items():
        for game, line in lines.items():
            _plot(axes, line, colours[game], style)
            ends.append((line[-1], f"{game}, {kind}", colours[game]))
    sizes = sorted({point["x"] for point in points if point["curve"].startswith("board")})
    axes.set_xticks(sizes, [f"{size} × {size}" for size in sizes])
    _log_ticks(axes)
    _name_ends(axes, ends)
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
    axes.set_title("Random moves per second: this package (blue) and others", pad=12)
    at, ticks = 0, []
    for kind, bars in groups:
        axes.text(0.006, at, _KIND_WORDS[kind], transform=axes.get_yaxis_transform(), weight="bold", va="center")
        at += 1
        for name, value, is_ours in sorted(bars, key=lambda bar: -bar[1]):
            axes.barh(at, value, height=0.72, color=_OURS if is_ours else _THEIRS)
            axes.text(value * 1.08, at, _short(float(f"{value:.2g}")), va="center", fontsize=9.5)
            ticks.append((at, name))
            at += 1
    axes.set_yticks([place for place, _ in ticks], [name for _, name in ticks])
    axes.tick_params(axis="y", length=0, labelcolor=INK)
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
    # A baseline of the topic itself is another library's (or the C program), and stands under its own name.
    baselines = {figure["baseline"] for figure in figures if figure["topic"] == kind}
    bars = []
    for figure in figures:
        name, value = figure["subject"], figure["value"]
        if figure["topic"] == kind:
            bars.append((name, value, f"{kind}: {name}" not in baselines))
        elif figure["topic"] == "peers" and (figure["baseline"] or "").partition(": ")[0] == kind:
            bars.append((name.partition(":")[0], value, False))
    return bars
