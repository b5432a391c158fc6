"""What is shipped: wheel and sdist are built from the checkout, checked, and used outside it."""

import os
import pathlib
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile

import pytest

import tradgames_env as tg

ROOT = pathlib.Path(tg.__file__).parent.parent


def _run(arguments: list[str | os.PathLike[str]], folder: pathlib.Path, **environment: str) -> str:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    result = subprocess.run(
        arguments, cwd=folder, env={**kept, **environment}, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> tuple[pathlib.Path, pathlib.Path]:
    """The wheel and the sdist; the wheel is built from the sdist, so both are complete or neither is."""
    folder = tmp_path_factory.mktemp("dist")
    _run([sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT], folder)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


def test_metadata_is_what_an_index_accepts(distributions: tuple[pathlib.Path, pathlib.Path]) -> None:
    _run([sys.executable, "-m", "twine", "check", "--strict", *distributions], ROOT)


def test_the_sdist_holds_what_the_tests_need(distributions: tuple[pathlib.Path, pathlib.Path]) -> None:
    with tarfile.open(distributions[1]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for name in ("Makefile", "constraints.txt", "tests/conftest.py", "configs/puluc.toml", "docs/generate.py"):
        assert name in names


def test_the_wheel_holds_policies_and_configurations(distributions: tuple[pathlib.Path, pathlib.Path]) -> None:
    with zipfile.ZipFile(distributions[0]) as archive:
        names = set(archive.namelist())
    for folder in (ROOT / "checkpoints").iterdir():
        if folder.is_dir():
            assert f"tradgames_env/pretrained/{folder.name}/model.safetensors" in names
    assert {f"training/configs/{path.name}" for path in (ROOT / "configs").glob("*.toml")} <= names
    assert not any(name.startswith(("tests", "docs", "benchmarks")) for name in names)


def test_the_installed_wheel_works_outside_the_repository(
    distributions: tuple[pathlib.Path, pathlib.Path], tmp_path: pathlib.Path
) -> None:
    home = tmp_path / "venv"
    venv.create(home, with_pip=False)
    packages = next((home / "lib").glob("python*")) / "site-packages"
    # Its dependencies are those of this environment, whose own editable install a .pth line does not bring along.
    (packages / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    with zipfile.ZipFile(distributions[0]) as archive:
        archive.extractall(packages)
    python = home / "bin" / "python"
    place = "import tradgames_env, training; print(tradgames_env.__file__, training.__file__)"
    assert _run([python, "-c", place], tmp_path).count(str(packages)) == 2
    command = "import sys; sys.argv[0] = 'tradgames'; from training.cli import main; sys.exit(main())"
    evaluate = ["evaluate", "pretrained:puluc", "--against", "greedy", "--games", "20", "--json", "result.json"]
    _run([python, "-c", command, *evaluate], tmp_path)
    assert '"greedy"' in (tmp_path / "result.json").read_text()
    train = ["train", "--config", "smoke", "--run-dir", "run", "--steps", "2048"]
    _run([python, "-c", command, *train], tmp_path)
    assert (tmp_path / "run" / "checkpoints" / "final" / "model.safetensors").exists()
