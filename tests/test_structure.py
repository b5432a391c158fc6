"""How the house stands: what importing costs, that a second process compiles nothing, that edited rules take effect."""

import os
import pathlib
import shutil
import subprocess
import sys

import tradgames_env as tg

ROOT = pathlib.Path(tg.__file__).parent.parent

FIRST_GAME = """
import sys, tradgames_env as tg
env = tg.raw_env("petteia"); env.reset(seed=0); env.step(env.position.legal_actions()[0])
tg.BatchGames("puluc", num_games=4, seed=0).step
print(tg.perft("yote", 2), tg.Position("yut_nori", seed=1).legal_moves())
misses = 0
for name, module in list(sys.modules.items()):
    if name.startswith("tradgames_env"):
        for value in vars(module).values():
            misses += sum(getattr(getattr(value, "stats", None), "cache_misses", {}).values())
print("misses", misses)
"""


def run(script: str, **environment: str) -> str:
    """Standard output of a script in a fresh process."""
    result = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        cwd=environment.get("PYTHONPATH", str(ROOT)),
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_import_is_light() -> None:
    script = (
        "import sys, tradgames_env\n"
        "print([m for m in ('torch', 'numba', 'matplotlib', 'pygame', 'PIL') if m in sys.modules])"
    )
    assert run(script).strip() == "[]"


def test_playing_needs_no_torch() -> None:
    script = (
        "import sys, tradgames_env as tg\n"
        "env = tg.env('puluc'); env.reset(seed=0); tg.load_agent('greedy').act(env.unwrapped.position)\n"
        "print('torch' in sys.modules)"
    )
    assert run(script).strip() == "False"


def test_second_process_compiles_nothing(tmp_path: pathlib.Path) -> None:
    cache = str(tmp_path / "cache")
    assert not run(FIRST_GAME, NUMBA_CACHE_DIR=cache).endswith("misses 0\n")
    assert run(FIRST_GAME, NUMBA_CACHE_DIR=cache).endswith("misses 0\n")


def test_edited_rules_take_effect_in_a_new_process(tmp_path: pathlib.Path) -> None:
    copy = tmp_path / "tradgames_env"
    shutil.copytree(ROOT / "tradgames_env", copy, ignore=shutil.ignore_patterns("__pycache__"))
    script = "import tradgames_env as tg; print(tg.__file__); print(tg.perft('puluc', 3), tg.Position('puluc').text())"
    environment = {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    before = run(script, **environment).splitlines()
    assert before[0] == str(copy / "__init__.py")
    assert before[1].startswith("245 ")
    rules = copy / "rules" / "puluc.py"
    source = rules.read_text()
    edited = source.replace("state[HOUSE + 1] = params[PIECES]", "state[HOUSE + 1] = 0")
    assert edited != source
    rules.write_text(edited)
    after = run(script, **environment).splitlines()
    assert " 5 0 0 0 " in after[1]
    assert after[1].split(" ")[0] != "245"


def test_doors_and_rules_belong_together() -> None:
    package = ROOT / "tradgames_env"
    doors = {path.stem.removesuffix("_v0") for path in package.glob("*_v0.py")}
    assert doors == set(tg.games())
    for game in doors:
        assert (package / "rules" / f"{game}.py").exists()


def test_public_names_exist() -> None:
    for name in tg.__all__:
        assert getattr(tg, name) is not None, name
    assert set(tg.__all__) <= set(dir(tg))
