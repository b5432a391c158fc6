"""Writes the generated pages: encoding, training, one of each game, and the pictures in ``docs/images``.

How a game is played and its worked examples come from ``game_pages.toml``; the examples are played with the rules.

``python docs/generate.py`` writes them, ``--check`` says which are out of date and exits 1.
"""

import ast
import dataclasses
import importlib
import inspect
import json
import pathlib
import random
import sys
import tomllib
from collections.abc import Sequence
from typing import Any

import pydantic

import tradgames_env as tg
from tradgames_env import rendering
from tradgames_env.encoding import ENCODER_VERSION, PLANES, Encoder
from tradgames_env.registration import gymnasium_id
from tradgames_env.rules.contract import GameRules
from tradgames_env.rules.registry import load_rules
from tradgames_env.rules.ruleset import Ruleset, load_ruleset
from training.config import all_settings
from training.metrics import METRICS

FOLDER = pathlib.Path(__file__).parent
BY_HAND = FOLDER / "game_pages.toml"
COMPATIBILITY = FOLDER / "compatibility.json"
COMPARISONS = FOLDER.parent / "benchmarks" / "results" / "comparisons.json"
MATRIX = FOLDER / "matrix.json"
Row = tuple[str, ...]
NOTE = "<!-- written by docs/generate.py; do not edit -->\n"
# A position in the middle of each game makes a better picture than the start.
PICTURE_PLIES = {"petteia": 24, "puluc": 24, "yote": 26, "yut_nori": 22}


def table(head: Row, rows: Sequence[Row]) -> str:
    """A Markdown table."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def option_docs(options: type) -> dict[str, str]:
    """The string literal after each field of an options dataclass."""
    body = ast.parse(inspect.getsource(options)).body[0]
    assert isinstance(body, ast.ClassDef)
    docs = {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
            docs[field.target.id] = str(ast.literal_eval(text.value))
    return docs


def changes(rules: GameRules, variant: str) -> str:
    """What a variant changes of the defaults, as code."""
    options = rules.variants[variant]
    plain = type(options)()
    fields = [field.name for field in dataclasses.fields(options)]
    changed = [f"{f}={getattr(options, f)!r}" for f in fields if getattr(options, f) != getattr(plain, f)]
    return f"`{', '.join(changed)}`" if changed else "the defaults"


def plane_rows(ruleset: Ruleset) -> list[Row]:
    """Each plane a ruleset uses, with its channel and largest value."""
    scales = ruleset.rules.feature_scales(ruleset.options)
    rows: list[Row] = []
    for channel, plane in enumerate(PLANES):
        if plane.name in scales or plane.name == "playable":
            largest = "" if plane.name.startswith("throw_") else f"{scales.get(plane.name, 1):g}"
            rows.append((str(channel), f"`{plane.name}`", plane.kind, plane.meaning, largest))
    return rows


def encoding_page() -> str:
    """The table of planes and which game uses which."""
    variants = {game: [load_ruleset(game, variant) for variant in tg.variants(game)] for game in tg.games()}
    used = {
        game: set().union(*(ruleset.rules.feature_scales(ruleset.options) for ruleset in rulesets)) | {"playable"}
        for game, rulesets in variants.items()
    }
    rows: list[Row] = []
    for channel, plane in enumerate(PLANES):
        marks = ["x" if plane.name in used[game] else "" for game in tg.games()]
        rows.append((str(channel), f"`{plane.name}`", plane.kind, plane.meaning, plane.scale, *marks))
    titles = tuple(load_rules(game).title for game in tg.games())
    return (
        f"{NOTE}# The state encoder\n\n"
        f"Encoder version {ENCODER_VERSION}. An observation is float32 `({len(PLANES)}, H, W)`: channel first, in\n"
        "[-1, 1] (only `balance` is ever negative). The channels mean the same in every game; with `pad_to=(H, W)`\n"
        "all games have one shape and one network can read them all. Site planes hold one number for each site, in\n"
        "the frame of the seat that looks; scalar planes hold one number everywhere. Each game's own page lists the\n"
        "planes it uses with their largest values.\n\n"
        + table(("channel", "name", "kind", "meaning", "scale", *titles), rows)
    )


def game_page(game: str) -> str:
    """Rules, variants, options, actions, endings and planes of one game."""
    rules, ruleset = load_rules(game), load_ruleset(game)
    docs = option_docs(type(ruleset.options))
    variants = [(f"`{name}`", rules.variant_notes[name], changes(rules, name)) for name in rules.variants]
    options = [(f"`{f.name}`", f"`{f.default!r}`", docs[f.name]) for f in dataclasses.fields(ruleset.options)]
    sizes = [
        (
            f"`{name}`",
            str(Encoder(load_ruleset(game, name)).shape),
            str(load_ruleset(game, name).num_actions),
            str(load_ruleset(game, name).num_seats),
        )
        for name in rules.variants
    ]
    module: Any = importlib.import_module(f"tradgames_env.rules.{game}")
    examples = "".join(example_text(game, number, example) for number, example in worked_examples(game))
    return (
        f"{NOTE}# {rules.title}\n\n"
        f"![{rules.title}](../images/{game}.svg)\n\n"
        f"`tg.env({game!r})` for PettingZoo, `gymnasium.make({gymnasium_id(game)!r})` for Gymnasium,\n"
        f"`tg.Position({game!r})` in plain Python. Rules version {rules.version}. Source: {rules.source}.\n\n"
        f"## How it is played\n\n{by_hand(game)['how_to_play']}\n## Worked examples\n\n{examples}"
        f"## Variants\n\n{table(('variant', 'what it is', 'options changed'), variants)}\n"
        f"{table(('variant', 'observation', 'actions', 'agents'), sizes)}\n"
        f"## Options\n\n{table(('option', 'default', 'meaning'), options)}\n"
        f"## Endings\n\n`reason` is one of {', '.join(f'`{reason}`' for reason in rules.reasons[1:])}.\n\n"
        f"## Observation (variant `box`)\n\n"
        f"{table(('channel', 'plane', 'kind', 'meaning', 'largest value'), plane_rows(ruleset))}\n"
        f"## Rules and decisions\n\n```text\n{(module.__doc__ or '').strip()}\n```\n"
    )


def by_hand(game: str) -> dict[str, Any]:
    """What a person wrote for the page of a game."""
    text: dict[str, Any] = tomllib.loads(BY_HAND.read_text(encoding="utf-8"))[game]
    return text


def worked_examples(game: str) -> list[tuple[int, dict[str, Any]]]:
    """The numbered worked examples of a game."""
    return list(enumerate(by_hand(game)["examples"], 1))


def played(game: str, example: dict[str, Any]) -> tuple[tg.Position, tg.Position]:
    """Positions before and after the moves of a worked example.

    Raises:
        ValueError: what the example says of the last position is not so.
    """
    before = tg.Position.from_text(game, example["position"], seed=1)
    after = before.copy()
    for move in example["moves"]:
        after.push(move)
    for wanted, found in (("over", after.reason), ("legal", after.legal_moves())):
        if wanted in example and example[wanted] != found:
            raise ValueError(f"{BY_HAND.name}: {example['title']!r} has {wanted} = {found!r}")
    return before, after


def example_pictures(game: str, number: int, example: dict[str, Any]) -> dict[str, str]:
    """File name to SVG: the position, and where something is played the one after it."""
    before, after = played(game, example)
    made = {f"{game}_example_{number}.svg": rendering.svg(before)}
    if example["moves"]:
        moved = rendering.changed_sites(before, after)
        made[f"{game}_example_{number}_after.svg"] = rendering.svg(after, last_move=moved)
    return made


def example_text(game: str, number: int, example: dict[str, Any]) -> str:
    """A worked example as Markdown: what is played, the pictures, what it shows."""
    pictures = "\n".join(
        f'![{"after the move" if "after" in name else "before"}](../images/examples/{name}){{ width="47%" }}'
        for name in example_pictures(game, number, example)
    )
    moves = ", ".join(f"`{move}`" for move in example["moves"])
    played_text = f"plays {moves}." if moves else f"may play {', '.join(f'`{move}`' for move in example['legal'])}."
    side = ("Natural", "Black")[tg.Position.from_text(game, example["position"]).to_move]
    return (
        f"### {example['title']}\n\n{side} {played_text} {example['note']} ({example['rules']})\n\n"
        f"{pictures}\n\n`{example['position']}`\n\n"
    )


TRAINING = """# Training

`tradgames train` learns a game by self-play, by one of three methods. `method = "ppo"` is masked PPO (Schulman et al.,
2017): one evaluation a move, for a fair player in a minute. `method = "alphazero"` searches before it moves and learns
what the search found: slower, stronger. `method = "alphabeta"` learns the evaluation of a classical search, for
tactical games without dice. `configs/README.md` says which file trains what.

## Masked PPO

Both sides are played by the same network, which always sees the board from the side that decides.

- **Who moves next is the rules' answer.** Advantages are computed along the joint sequence of decisions and change sign
  only where the mover changes, so a side that decides twice in a row (Yote's bonus, Yut Nori's further throws) keeps
  its own. The reward of the last move reaches the last decision of both sides.
- **Margin.** Random Petteia is drawn in 99 games of 100, and learning from results alone gets nowhere. A decision that
  changes the margin (captures, removed counters, pieces home) is rewarded by `shaping.weight` times its share of the
  largest margin; the weight falls to 0 over `shaping.until` of the run. Value and margin are separate outputs, so
  the value always means the real result, and evaluation is by real results only.
- **Variety.** A share of the games begins after random moves, a share is played against frozen past policies, and a
  side may play carelessly: some of its moves are random. Random and frozen moves are not learned from.
- **Truncated games** (`max_turns`) count as draws.
- **Play.** A checkpoint plays with `lookahead` by default: every legal move is tried on a copy, the position it leads
  to (each outcome of a throw included) is valued by the network, and the best expected value is played.
  `load_network_agent(path, lookahead=False)` plays the bare policy instead.

## Search

An iteration plays some decisions in every game with search, adds them to the samples, and learns from the newest ones.

- **Games without dice**: Gumbel AlphaZero (Danihelka et al., 2022), which improves on the network with few simulations.
  `search.full_share` of the decisions get a full search, whose policy is learned; the others a fast one, and teach
  values alone.
- **Games of dice**: all throws and moves are looked at from before the throw (`improver = "expectimax"`). The mean over
  the throws is exact, and what is learned from the next position is only by how much it was misjudged: no throw's luck
  enters a target.
- **Targets** are mixtures of what each later decision's search expected and of the result, in natural's view from one
  end of a game to the other, so that nothing depends on who moves when. The value is win, draw and loss. A target waits
  for the end of its game for at most `selfplay.horizon` decisions.
- **Margin.** With `shaping.weight` the final margin counts in the search, the network's own margin output telling what
  to expect of it. The value stays the real result; the weight falls to 0 during the run.
- **Variety**: early decisions drawn from the search's policy, random openings, positions with few pieces
  (`selfplay.sparse_share`, Petteia and Yote), games against past policies, reflected samples.
- **Shards.** Self-play is split into `selfplay.shards` pure functions. Processes or a Ray cluster compute them
  (`selfplay.engine`; `selfplay.address` is that of a running cluster whose nodes have this package), and the result is
  the same on any number of workers, whoever of them dies meanwhile.
- **Several learners.** `torchrun --standalone --nproc-per-node=2 -m training.cli train --config FILE` shares every
  gradient step among two processes, each of which takes its rows of the batch; the first of them also plays, reports
  and writes. The weights are those of one process but for the last digits.

## Alpha-beta

Petteia and Yote are tactical and dozens of moves wide: a search that sees a little further wins. So the evaluation is
kept small enough to be followed move by move, and a core looks at millions of positions a second.

- **Search.** Iterative deepening with a table of positions, captures and killers first, late quiet moves reduced,
  captures followed to their end, repetitions as draws. A lead counts the less the sooner the game ends by its quiet
  clock, so a player who leads makes progress. The budget is `play.simulations` positions for a move.
- **Evaluation.** One hidden layer over the pieces as each side sees them, on the board and in hand, in integers; an
  output row for each eighth of the pieces. A removal that a jump still owes (Yote) is part of the capture.
- **Learning.** Both sides search `deepening.positions` positions a move. A position whose best move captures nothing is
  learned from when its game is over: `deepening.trust` of what the search said, the rest how the game ended. Before the
  first step of learning the margin alone is the evaluation; nothing else is given. `shaping.weight` is what the margin
  of a drawn game is worth; it falls to 0 during the run.

### Several games, one network

`[[games]]` in place of `[game]` names several games for one network: they share all but the policy head. A game is
given what differs for it, and has the run's settings otherwise:

```toml
[[games]]
name = "yote"
shaping = { weight = 0.1 }

[[games]]
name = "puluc"
pool = { share = 0.0 }
search = { improver = "expectimax" }
```

Each has `selfplay.shards` shards of its own and its own samples, stored without what never changes in it. Every
gradient step takes equally many samples of each game, and its loss is the mean of theirs, so that no game counts for
more because it is played faster. Metrics are the means over the games, and those of each stand under `yote_box/` and
the like. The checkpoint plays all of them; `play.simulations` and `play.plies` together mean a tree search in games
without dice and expected values in the others. `configs/alphazero_all.toml` learns the four games.

## Runs and checkpoints

A run is a function of its configuration and seed; with a budget of steps the same machine gives the same weights. The
run folder holds `metrics.jsonl`, TensorBoard events, `curves.png`, `checkpoints/` and `resume/`, and for a search
`replay/` with the samples of each iteration; a run that was stopped or killed goes on with `--resume` as if it never
had been. Every checkpoint plays a few games against the two before it; all of them together give `rating/elo`, the
Elo so far. `resume/` keeps the last three states with their checksums; when the newest is damaged, the run goes back to
the one before and says so.

A checkpoint is a folder: `model.safetensors`, `checkpoint.json` (game, options, versions, network, configuration,
seed, measured strength, checksum) and a model card. It is data only; it is checked before anything of it is used,
and it is refused if the game's rules or the encoder have another version.
"""


COMPATIBILITY_TEXT = """`make test-integrations` sets up three environments from a fresh checkout, runs the tests of
every library in them and notes what they did; `make test-matrix` does so for the versions of what the games stand on.
This page is made from their notes, in `docs/compatibility.json` and `docs/matrix.json`. A library that is not listed
was not part of that run. Speeds are decisions in Puluc `box`, with random legal moves (ONNX: those of a small policy),
a second of processor time; where a library uses several threads, the time of all.
[In other libraries](libraries.md) says how each is used.
"""

ROWS_TEXT = """## What the games stand on

`tests/matrix.py` runs the tests of the environments with each of these.
"""

EXTRAS_TEXT = """## What each extra resolves to

What a resolver (uv, with the newest releases of the day) answers for `tradgames-env[EXTRA]`, of the packages that the
libraries want some version of. Every two extras have versions that fit together, except where it is said below; beside
RLlib the others get the older Gymnasium that it holds, beside AgileRL an older PettingZoo.
"""
OUTCOMES = ("passed", "skipped", "failed")
EXTRAS_SHOWN = ("pettingzoo", "gymnasium", "numpy", "torch", "tensordict")


def training_page() -> str:
    """Method, every setting and every metric."""
    rows: list[Row] = [
        (f"`{name}`", shown(field), " ".join((field.description or "").split()))
        for name, field in all_settings().items()
    ]
    metrics = [(f"`{name}`", meaning) for name, meaning in METRICS.items()]
    return (
        f"{NOTE}{TRAINING}\n## Settings\n\nAny of them can be given on the command line: "
        "`tradgames train --config FILE --ppo.epochs 4`.\n\n"
        f"{table(('setting', 'default', 'meaning'), rows)}\n## Metrics\n\n{table(('metric', 'meaning'), metrics)}"
    )


def compatibility_page() -> str:
    """What the tests of the libraries did and what the resolver answered, as the two targets of make noted it."""
    libraries: dict[str, Any] = json.loads(COMPATIBILITY.read_text(encoding="utf-8"))
    matrix: dict[str, Any] = json.loads(MATRIX.read_text(encoding="utf-8"))
    rows = [library_row(title, library) for title, library in libraries.items()]
    parts = [
        f"{NOTE}# What works with which version\n\n{COMPATIBILITY_TEXT}",
        table(("library", "versions", "tests", "decisions a second of processor time"), rows),
        *(library_part(title, library) for title, library in libraries.items()),
        ROWS_TEXT,
        matrix_table(matrix["rows"]),
        EXTRAS_TEXT,
        extras_table(matrix["extras"]),
        *(
            f"No versions of `{pair}` fit together; the resolver says:\n\n> {why}\n"
            for pair, why in matrix["apart"].items()
        ),
    ]
    return "\n".join(parts)


def library_row(title: str, library: dict[str, Any]) -> Row:
    """A library's line in the table."""
    versions = ", ".join(f"{package} {version}" for package, version in library["versions"].items())
    found = list(library["tests"].values())
    counted = ", ".join(f"{found.count(outcome)} {outcome}" for outcome in OUTCOMES if outcome in found)
    return title, versions, counted, ", ".join(f"{speed:,}" for speed in library["speed"].values())


def library_part(title: str, library: dict[str, Any]) -> str:
    """What ran of a library, by which way its speed was measured, and its known limits."""
    by_outcome = {
        outcome: [test for test, found in library["tests"].items() if found == outcome] for outcome in OUTCOMES
    }
    lines = [
        *(f"**{outcome.capitalize()}**: {'; '.join(tests)}." for outcome, tests in by_outcome.items() if tests),
        *(
            f"**Speed**: {way}, {speed:,} decisions a second of processor time."
            for way, speed in library["speed"].items()
        ),
        *(f"**Known limit**: {limit}." for limit in library["limits"]),
    ]
    return f"## {title}\n\nPython {library['python']}.\n\n" + "\n\n".join(lines) + "\n"


def matrix_table(rows: dict[str, Any]) -> str:
    """The versions of each row of the matrix, and what its tests did."""
    packages = sorted({package for found in rows.values() for package in found["versions"]}, key=str.lower)
    lines = [
        (
            name,
            *(found["versions"].get(package, "") for package in packages),
            ", ".join(f"{count:,} {outcome}" for outcome, count in found["tests"].items() if count) or "not installed",
        )
        for name, found in rows.items()
    ]
    return table(("row", *packages, "tests"), lines)


def extras_table(extras: dict[str, Any]) -> str:
    """What the resolver found for each extra."""
    lines = [
        (f"`{extra}`", *(answer["versions"].get(package, "") for package in EXTRAS_SHOWN))
        if answer["resolved"]
        else (f"`{extra}`", *("none" for _ in EXTRAS_SHOWN))
        for extra, answer in extras.items()
    ]
    return table(("extra", *EXTRAS_SHOWN), lines)


COMPARISONS_TEXT = """Ways to train the same game, each for the same wall time on all cores of one machine, one
after the other; then all play all, in pairs of games with sides swapped from openings of 4 to 6 random moves. Ratings
in Elo, random play at 0, with 95 % intervals. `benchmarks/comparisons.toml` says what each contender is.
"""


def comparisons_page() -> str:
    """What ``benchmarks/comparisons.py`` found."""
    studies: dict[str, Any] = json.loads(COMPARISONS.read_text(encoding="utf-8"))
    return f"{NOTE}# What trains better\n\n{COMPARISONS_TEXT}" + "".join(
        comparison(name, found) for name, found in sorted(studies.items())
    )


def comparison(name: str, found: dict[str, Any]) -> str:
    """One study: its question, plot, table and origin."""
    rows = [
        (
            row["name"],
            f"{row['elo']:+.0f} ({row['low']:+.0f} to {row['high']:+.0f})",
            f"{100.0 * row['score']:.1f} %",
            f"{1000.0 * row['seconds_per_move']:.2f}",
        )
        for row in found["ladder"]
    ]
    facts = found["provenance"]
    machine = facts["machine"]
    game = f"{found['game'].replace('_', ' ').title()} `{found['variant']}`"
    return (
        f"\n## {found['question']}\n\n{game}, {found['minutes']:g} minutes of training each, "
        f"{found['games']} games of every two.\n\n"
        f"![Ratings with intervals](images/comparison_{name}.svg)\n\n"
        f"{table(('player', 'Elo', 'score', 'ms a move'), rows)}\n"
        f"`{facts['command']}`, {facts['date']}, {machine['cores']} cores of {machine['processor']}.\n"
    )


def shown(field: pydantic.fields.FieldInfo) -> str:
    """The default of a setting as code."""
    return "required" if field.is_required() else f"`{field.default!r}`"


def picture(game: str) -> str:
    """SVG of a position from a random game."""
    choose, position = random.Random(1), tg.Position(game, seed=3)
    before = position.copy()
    for _ in range(PICTURE_PLIES.get(game, 10)):
        before = position.copy()
        position.push(choose.choice(position.legal_actions()))
    return rendering.svg(position, last_move=rendering.changed_sites(before, position))


def pages() -> dict[pathlib.Path, str]:
    """Every generated file with its content."""
    made = {
        FOLDER / "comparisons.md": comparisons_page(),
        FOLDER / "compatibility.md": compatibility_page(),
        FOLDER / "encoding.md": encoding_page(),
        FOLDER / "training.md": training_page(),
    }
    for game in tg.games():
        made[FOLDER / "games" / f"{game}.md"] = game_page(game)
        made[FOLDER / "images" / f"{game}.svg"] = picture(game)
        for number, example in worked_examples(game):
            for name, drawing in example_pictures(game, number, example).items():
                made[FOLDER / "images" / "examples" / name] = drawing
    return made


def main(arguments: list[str]) -> int:
    """Write the pages, or with ``--check`` compare them with what is there."""
    made = pages()
    stale = [path for path, text in made.items() if not path.exists() or path.read_text() != text]
    if arguments == ["--check"]:
        sys.stderr.writelines(f"out of date: {path}; run python docs/generate.py\n" for path in stale)
        return 1 if stale else 0
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(made[path])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
