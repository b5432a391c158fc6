"""Writes ``docs/benchmarks.md`` and its pictures from the figures in ``benchmarks/results/speed.json``.

``tradgames bench --compare --grow --json benchmarks/results/speed.json`` measures them, on a quiet machine;
``python benchmarks/publish.py`` writes the page, ``--check`` says whether it is out of date and exits 1.
"""

import itertools
import json
import pathlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any

ROOT = pathlib.Path(__file__).parent.parent
RESULT = ROOT / "benchmarks" / "results" / "speed.json"
PAGE = ROOT / "docs" / "benchmarks.md"
IMAGES = ROOT / "docs" / "images"
NOTE = "<!-- written by benchmarks/publish.py; do not edit -->\n"

_LEFT, _RIGHT = "---", "---:"
Figure = Mapping[str, Any]


def _each(petteia: float, yote: float, puluc: float, yut_nori: float) -> dict[str, float]:
    return {"petteia": petteia, "yote": yote, "puluc": puluc, "yut_nori": yut_nori}


WANTED_RATIO: dict[str, dict[str, float]] = {
    "playouts": {"petteia": 0.7},
    "batch, 2 cores": _each(1.8, 1.8, 1.8, 1.8),
    "raw_env": _each(3, 3, 3, 3),
    "env": _each(2, 2, 2, 2),
    "position": _each(1, 1, 3, 3),
}
"""Least ratios that the package sets itself, by topic and game."""

WANTED_SPEED: dict[str, dict[str, float]] = {
    "playouts": {"yote": 12e6, "puluc": 20e6, "yut_nori": 20e6},
    "batch": _each(1.5e6, 2e6, 4e6, 3e6),
}
"""Least speeds, where nothing else plays the same game."""

WANTED_BYTES: dict[str, float] = _each(1024, 1024, 128, 128)
"""Most bytes."""

PICTURES = {
    "batch": (
        "Moves a second of one core against the number of games in the batch: what a call from Python costs is shared\n"
        "by more and more games, until their observations outgrow the cache."
    ),
    "board": (
        "Against the size of the board, filled as densely as the box's: *playouts* are random moves inside the\n"
        "compiled loop, *steps* are batch steps with observation and mask, which grow with the board."
    ),
    "threads": (
        "Batch steps by more and more threads, as a multiple of one thread. More than ideal: two cores have two caches."
    ),
    "memory": "Bytes that a batch allocates, observations and masks included.",
}


def short(value: float) -> str:
    """Three figures and a letter: 11.0 M."""
    for size, letter in ((1e6, " M"), (1e3, " k")):
        if value >= size:
            scaled = value / size
            return f"{scaled:.{max(0, 2 - len(str(int(scaled))) + 1)}f}{letter}"
    return f"{value:.0f}"


def table(head: Sequence[str], sides: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, sides, *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def wanted(figure: Figure) -> tuple[str, str]:
    """What was asked for of a figure, and whether it is reached; empty where nothing was."""
    topic, game = figure["topic"], figure["subject"]
    if topic == "bytes" and game in WANTED_BYTES:
        return f"≤ {WANTED_BYTES[game]:,.0f}", _met(figure["value"] <= WANTED_BYTES[game])
    ratio, speed = WANTED_RATIO.get(topic, {}).get(game), WANTED_SPEED.get(topic, {}).get(game)
    if ratio is not None:
        reached = "not measured" if figure["ratio"] is None else _met(figure["ratio"] >= ratio)
        return f"≥ {ratio:g} ×", reached
    if speed is not None:
        return f"≥ {short(speed)}", _met(figure["value"] >= speed)
    return "", ""


def _met(is_met: bool) -> str:
    return "yes" if is_met else "**no**"


def topic_section(title: str, figures: Sequence[Figure]) -> str:
    """One topic: the figures, what they are compared with, what was asked for."""
    head = [
        "",
        "bytes" if figures[0]["topic"] == "bytes" else "moves/s",
        "lowest – highest",
        "ratio",
        "wanted",
        "reached",
    ]
    sides = [_LEFT, _RIGHT, _RIGHT, _LEFT, _RIGHT, _LEFT]
    rows = [(figure["subject"], _value(figure), _spread(figure), _ratio(figure), *wanted(figure)) for figure in figures]
    used = [column for column in range(len(head)) if any(row[column] for row in rows)]
    heading = f"### {title[:1].upper()}{title[1:]}"
    cells = [[row[column] for column in used] for row in rows]
    return f"{heading}\n\n{table([head[c] for c in used], [sides[c] for c in used], cells)}"


def _value(figure: Figure) -> str:
    return f"{figure['value']:,.0f}" if figure["topic"] == "bytes" else short(figure["value"])


def _spread(figure: Figure) -> str:
    return "" if figure["lowest"] == figure["highest"] else f"{short(figure['lowest'])} – {short(figure['highest'])}"


def _ratio(figure: Figure) -> str:
    if figure["ratio"] is None:
        return ""
    baseline = figure["baseline"].partition(": ")[2]
    return f"{figure['ratio']:.2f} × {'one core' if baseline == figure['subject'] else baseline}"


def peers_section(figures: Sequence[Figure]) -> str:
    """Other libraries beside our nearest game doing the same."""
    speeds = {f"{figure['topic']}: {figure['subject']}": figure["value"] for figure in figures}
    rows = [_peer_row(figure, speeds) for figure in figures if figure["topic"] == "peers"]
    if not rows:
        return ""
    head = ("library and game", "how", "moves/s", "beside it, ours", "moves/s", "ours by theirs")
    text = (
        "## Other libraries\n\n"
        "The nearest games of libraries that are made for speed, each by its usual fast path, beside the game of\n"
        "ours that is closest in kind and does the same work. No two games cost the same: read orders of magnitude.\n\n"
        "![Speeds of the libraries](images/bench_peers.svg)\n\n"
    )
    return text + table(head, (_LEFT, _LEFT, _RIGHT, _LEFT, _RIGHT, _RIGHT), rows)


def _peer_row(figure: Figure, speeds: Mapping[str, float]) -> tuple[str, ...]:
    library, _, how = figure["subject"].partition(": ")
    row = (library, how, short(figure["value"]))
    if figure["ratio"] is None:
        return (*row, "", "", "")
    kind, _, game = figure["baseline"].partition(": ")
    times = 1 / figure["ratio"]
    return (
        *row,
        f"{game}: {kind}",
        short(speeds[figure["baseline"]]),
        f"{times:.0f} ×" if times >= 10 else f"{times:.2g} ×",
    )


def growth_section(points: Sequence[Mapping[str, Any]]) -> str:
    """The curves."""
    curves = {point["curve"].partition(",")[0] for point in points}
    if len({point["x"] for point in points if point["curve"] == "threads"}) < 2:
        curves.discard("threads")
    shown = [f"![{name}](images/bench_{name}.svg)\n\n{text}\n" for name, text in PICTURES.items() if name in curves]
    return "## How cost grows\n\n" + "\n".join(shown) if shown else ""


def source_section(result: Mapping[str, Any]) -> str:
    """Command, machine, date and versions."""
    record = result["provenance"]
    machine = record["machine"]
    rows = [
        ("command", f"`{record['command']}`"),
        ("date", record["date"]),
        (
            "machine",
            f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB, {machine['system']}",
        ),
        ("versions", ", ".join(f"{name} {version}" for name, version in record["versions"].items())),
        *(("note", note) for note in result["notes"]),
    ]
    return table(("", ""), (_LEFT, _LEFT), rows)


def page(result: Mapping[str, Any]) -> str:
    """The whole page."""
    figures, topics = result["figures"], result["topics"]
    sections = [
        topic_section(topics[topic]["title"], list(group))
        for topic, group in itertools.groupby(figures, key=lambda figure: figure["topic"])
        if topic != "peers"
    ]
    return "\n".join(
        part
        for part in (
            f"{NOTE}# Speed\n",
            "Medians; every baseline was measured in the same run, in turn with what is compared with it, and a ratio\n"
            "is the median of the ratios of the turns. All games are played by random legal moves and restarted when\n"
            "over; compiling is not counted. Measure your own machine: `tradgames bench`.\n",
            source_section(result),
            "## The four games\n",
            *sections,
            "`petteia.c` (in `benchmarks/`) is a small C program for the same rules on the 8 × 8 board alone,\n"
            "with tables for its lines, built by `gcc -O3 -march=native`; C that fills the whole board's 64 bits at\n"
            "once was measured at 1.5 times its speed. Random chess, which can go on for ever, starts anew after 300\n"
            "moves.\n",
            peers_section(figures),
            growth_section(result["growth"]),
        )
        if part
    )


def main(arguments: list[str]) -> int:
    """Write the page and the pictures, or with ``--check`` compare the page with what is there."""
    result = json.loads(RESULT.read_text(encoding="utf-8"))
    text = page(result)
    if arguments == ["--check"]:
        stale = not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text
        if stale:
            print(f"out of date: {PAGE}; run python benchmarks/publish.py", file=sys.stderr)
        return int(stale)
    # Pictures are not compared: other releases of Matplotlib draw other bytes.
    from training.bench_plots import draw

    PAGE.write_text(text, encoding="utf-8")
    for path in (PAGE, *draw(result, IMAGES)):
        print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
