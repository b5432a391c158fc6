"""Kills training runs at random moments, goes on with each, and compares what they give with an undisturbed run.

``python benchmarks/killing.py [--method ppo] [--engine process] [--kills 20] [--steps 24576] [--folder FOLDER]``

A run is killed (SIGKILL: nothing of the process can prepare for it) at moments drawn evenly over its start and its
training, and resumed as a user would: with ``--resume`` where a state was saved, anew where none was. When it comes to
its end before it was killed often enough, another run begins. The weights and samples of each must equal those of the
undisturbed run bit for bit, its metrics must have every iteration once, and no half-written file may be left over.
"""

import argparse
import hashlib
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

CONFIGS = {
    "ppo": """
progress = "off"
save_minutes = 0.001
threads = 1
game = {name = "puluc", variant = "mini"}
network = {width = 32, blocks = 1}
rollout = {games = 64, steps = 16}
ppo = {minibatch_size = 256}
pool = {every = 2}
""",
    "alphazero": """
method = "alphazero"
progress = "off"
save_minutes = 0.001
threads = 1
game = {name = "petteia", variant = "mini"}
network = {width = 32, blocks = 1}
search = {simulations = 8, fast_simulations = 4}
selfplay = {shards = 2, games = 32, decisions = 16}
replay = {first_window = 2_000, window = 4_000}
learner = {batch_size = 128}
pool = {share = 0.25, every = 2, capacity = 2}
""",
    "alphabeta": """
method = "alphabeta"
progress = "off"
save_minutes = 0.001
threads = 1
game = {name = "petteia", variant = "mini"}
deepening = {positions = 60, batch_size = 128}
selfplay = {shards = 2, games = 16, decisions = 32, random_share = 0.1, opening_share = 0.5, opening_plies = 20}
replay = {window = 4_000}
""",
}
_LEFTOVERS = ("*.tmp", ".*.tmp", ".*.old")


def command(config: pathlib.Path, run_dir: pathlib.Path, *more: str) -> list[str]:
    """What a user types."""
    start = [sys.executable, "-m", "training.cli", "train", "--config", str(config), "--run-dir", str(run_dir)]
    return [*start, *more]


def lines(run_dir: pathlib.Path) -> list[str]:
    """Of the metrics of a run; the last may be half written when it was killed."""
    path = run_dir / "metrics.jsonl"
    return path.read_text().splitlines() if path.exists() else []


def iterations(run_dir: pathlib.Path) -> list[int]:
    """Those in the metrics of a run that ended."""
    return [json.loads(line)["iteration"] for line in lines(run_dir)]


def result(run_dir: pathlib.Path) -> str:
    """SHA-256 of the final weights and of the newest samples; which older ones are left depends on when it saved."""
    paths = [run_dir / "checkpoints" / "final" / "model.safetensors", *sorted(run_dir.glob("replay/*"))[-1:]]
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


def undisturbed(config: pathlib.Path, run_dir: pathlib.Path, *more: str) -> tuple[float, float]:
    """Seconds until the first iteration is reported, and until the end."""
    started = time.monotonic()
    with subprocess.Popen(command(config, run_dir, *more)) as process:
        first = None
        while process.poll() is None:
            if first is None and lines(run_dir):
                first = time.monotonic() - started
            time.sleep(0.02)
    if process.returncode != 0:
        raise SystemExit(f"the undisturbed run ended with {process.returncode}")
    seconds = time.monotonic() - started
    return first or seconds, seconds


def attempt(config: pathlib.Path, run_dir: pathlib.Path, seconds: float | None, *more: str) -> bool:
    """Start or resume a run and kill it after some seconds; whether it was killed before it ended."""
    resume = any(run_dir.glob("resume/it_*"))
    with subprocess.Popen(command(config, run_dir, *more, *(["--resume"] if resume else []))) as process:
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            return True
    if code != 0:
        raise SystemExit(f"{run_dir}: a {'resumed' if resume else 'new'} run ended with {code}")
    return False


def leftovers(run_dir: pathlib.Path) -> list[str]:
    """Files that a killed process began to write and nobody removed."""
    return sorted(str(path) for pattern in _LEFTOVERS for path in run_dir.rglob(pattern))


def kill_often(
    config: pathlib.Path, folder: pathlib.Path, kills: int, draw: random.Random, *more: str
) -> tuple[list[float], list[str]]:
    """The moments of the kills in seconds after a start, and what was found wrong."""
    first, whole = undisturbed(config, folder / "undisturbed", *more)
    expected, wanted = result(folder / "undisturbed"), iterations(folder / "undisturbed")
    # On average, half of this window is training: a kill costs about that much of the run.
    window = first + 2.0 * (whole - first) / max(kills, 2)
    moments: list[float] = []
    wrong: list[str] = []
    run = 0
    while len(moments) < kills:
        run += 1
        run_dir = folder / f"killed{run}"
        going_on = True
        while going_on:
            seconds = draw.uniform(0.0, window) if len(moments) < kills else None
            going_on = attempt(config, run_dir, seconds, *more)
            if going_on and seconds is not None:
                moments.append(seconds)
                print(f"killed after {seconds:5.2f} s, {len(lines(run_dir))} iterations", flush=True)
        if result(run_dir) != expected:
            wrong.append(f"{run_dir}: other weights or samples")
        if iterations(run_dir) != wanted:
            wrong.append(f"{run_dir}: iterations {iterations(run_dir)}")
        wrong += [f"{path}: left over" for path in leftovers(run_dir)]
    return moments, wrong


def main() -> int:
    """Kill, compare, report; 1 when anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--method", choices=CONFIGS, default="ppo")
    parser.add_argument("--engine", choices=("serial", "process", "ray"), default="process", help="of self-play")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--steps", type=int, default=24_576, help="decisions of a run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=pathlib.Path, help="kept afterwards; a temporary one when not given")
    arguments = parser.parse_args()
    folder = arguments.folder or pathlib.Path(tempfile.mkdtemp(prefix="killing-"))
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "config.toml"
    config.write_text(CONFIGS[arguments.method])
    more = ["--steps", str(arguments.steps)]
    if arguments.method != "ppo":
        more += ["--selfplay.engine", arguments.engine]
    try:
        moments, wrong = kill_often(config, folder, arguments.kills, random.Random(arguments.seed), *more)
    finally:
        if arguments.folder is None:
            shutil.rmtree(folder, ignore_errors=True)
    print("\n".join(wrong), end="\n" if wrong else "")
    verdict = "differs" if wrong else "bit for bit the same"
    print(f"{arguments.method}: {arguments.steps:,} decisions, killed {len(moments)} times, {verdict}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
