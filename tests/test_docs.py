"""The generated pages say what the code says."""

import importlib.util
import pathlib

import tradgames_env as tg

ROOT = pathlib.Path(tg.__file__).parent.parent


def test_generated_pages_are_current() -> None:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    for path, text in generate.pages().items():
        assert path.read_text() == text, f"{path}: run python docs/generate.py"


def test_readme_names_every_variant() -> None:
    readme = (ROOT / "README.md").read_text()
    for game in tg.games():
        for variant in tg.variants(game):
            assert f"`{variant}`" in readme, (game, variant)
