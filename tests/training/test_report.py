import html.parser
import json
import pathlib
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from tradgames_env.agents import load_agent
from tradgames_env.agents.base import Agent
from tradgames_env.position import Position
from tradgames_env.rules.ruleset import load_ruleset
from training import report
from training.evaluate import Evaluation, evaluate_players
from training.markup import Html, data_uri, element, join
from training.match import replay
from training.page import ratings_plot
from training.provenance import provenance
from training.ratings import Rating

HOSTILE = "<script>alert('x')</script>&\"$x_1$"
VOID = {"br", "hr", "img", "input", "meta"}


class Page(html.parser.HTMLParser):
    """Checks that every element is closed, and collects texts and attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def count(self, tag: str, class_: str) -> int:
        return sum(name == tag and class_ in (attrs.get("class") or "").split() for name, attrs in self.elements)


def players(*names: str) -> dict[str, Agent]:
    return {name: load_agent("greedy" if number == 0 else "random") for number, name in enumerate(names)}


def measured(game: str = "puluc", variant: str = "mini", names: tuple[str, ...] = ("greedy", "random")) -> Evaluation:
    return evaluate_players(players(*names), load_ruleset(game, variant), games=8, seed=1)


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    return measured()


@pytest.fixture(scope="module")
def facts() -> dict[str, Any]:
    return provenance(f"tradgames evaluate {HOSTILE}", 1)


def test_page_is_well_formed_and_needs_nothing_else(evaluation: Evaluation, facts: dict[str, Any]) -> None:
    text = report.build_report(evaluation, facts)
    page = Page(text)
    assert text.startswith("<!DOCTYPE html>")
    for tag, attributes in page.elements:
        assert tag not in ("link", "iframe", "object", "embed", "base")
        assert (attributes.get("src") or "data:").startswith("data:")
        assert (attributes.get("href") or "#").startswith("#")
        assert not [name for name in attributes if name.startswith("on")]
    assert "url(" not in text
    assert "@import" not in text
    assert "http" not in "".join(page.texts)


def test_every_position_of_the_game_is_drawn_and_listed(evaluation: Evaluation, facts: dict[str, Any]) -> None:
    page = Page(report.build_report(evaluation, facts))
    sample = report.sample_game(evaluation)
    assert sample is not None
    frames = list(replay(evaluation.ruleset, sample[1]))
    boards = [attributes for tag, attributes in page.elements if tag == "img" and attributes.get("loading")]
    assert [board["alt"] for board in boards] == [frame.position.text() for frame in frames]
    assert len({board["src"] for board in boards}) > len(frames) / 2
    assert page.count("figure", "frame") == len(frames)
    links = [attributes["href"] for tag, attributes in page.elements if tag == "a"]
    anchors = {attributes.get("id") for _, attributes in page.elements}
    assert links == [f"#p{number}" for number in range(len(frames))]
    assert {link[1:] for link in links if link} <= anchors
    for frame in frames[1:]:
        assert frame.move in page.texts


def test_results_ratings_and_notes_are_there(evaluation: Evaluation, facts: dict[str, Any]) -> None:
    page = Page(report.build_report(evaluation, facts))
    text = " ".join(page.texts)
    match = evaluation.matches[0]
    assert f"{100 * match.score:.1f} % ({100 * match.score_interval[0]:.1f}–" in text
    assert "random = 0" in text
    assert facts["command"] in page.texts
    assert facts["date"] in page.texts
    assert facts["machine"]["processor"] in text
    assert f"numpy {facts['versions']['numpy']}" in text
    assert "seed 1" in text


def test_texts_are_escaped(facts: dict[str, Any]) -> None:
    text = report.build_report(measured(names=(HOSTILE, "random")), facts)
    page = Page(text)
    assert sum(tag == "script" for tag, _ in page.elements) == 1
    assert "<script>alert" not in text
    assert any(HOSTILE in piece for piece in page.texts)


def test_any_game_can_be_reported(game: str, facts: dict[str, Any]) -> None:
    text = report.build_report(measured(game, "box"), facts)
    assert Page(text).count("figure", "frame") > 5


def test_a_long_game_is_cut(evaluation: Evaluation, facts: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("training.page.MOST_POSITIONS", 4)
    page = Page(report.build_report(evaluation, facts))
    assert page.count("figure", "frame") == 4
    assert any("Only the first 3 moves are shown" in text for text in page.texts)


def test_warnings_are_shown(sprint: str, facts: dict[str, Any]) -> None:
    class Waiting:
        name = "waiting"

        def act(self, position: Position) -> str:
            return "wait"

        def act_many(self, positions: list[Position]) -> list[str]:
            return ["wait"] * len(positions)

        def policy(self, position: Position) -> dict[str, float]:
            return {"wait": 1.0}

        def value(self, position: Position) -> float:
            return 0.0

        def seed(self, seed: int) -> None:
            pass

    agents = {"one": Waiting(), "two": Waiting()}
    still = evaluate_players(agents, load_ruleset(sprint), games=4, opening_plies=0)
    text = " ".join(Page(report.build_report(still, facts)).texts)
    assert "4 stopped games count as draws" in text
    assert "75 % of the games repeat another one" in text


def test_training_curves_are_shown(tmp_path: pathlib.Path, evaluation: Evaluation, facts: dict[str, Any]) -> None:
    lines = [
        {"iteration": i, "steps": 1000 * i, "games/natural_wins": 0.5, "games/black_wins": 0.5, "games/draws": 0.0}
        for i in range(1, 4)
    ]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    page = Page(report.build_report(evaluation, facts, tmp_path))
    pictures = [attributes["src"] or "" for tag, attributes in page.elements if tag == "img"]
    assert sum(picture.startswith("data:image/png;base64,") for picture in pictures) == 1


def test_a_run_without_metrics_is_refused(
    tmp_path: pathlib.Path, evaluation: Evaluation, facts: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match=r"holds no metrics\.jsonl"):
        report.build_report(evaluation, facts, tmp_path)


def test_report_is_written(tmp_path: pathlib.Path, evaluation: Evaluation, facts: dict[str, Any]) -> None:
    path = report.write_report(evaluation, facts, tmp_path / "new" / "folder")
    assert path == tmp_path / "new" / "folder" / "index.html"
    Page(path.read_text(encoding="utf-8"))
    assert [file.name for file in path.parent.iterdir()] == ["index.html"]


def test_ratings_plot_is_svg_with_every_name() -> None:
    ratings = [Rating("best", 250.0, 200.0, 320.0, 40), Rating(HOSTILE, 0.0, 0.0, 0.0, 40)]
    root = ET.fromstring(ratings_plot(ratings))
    assert root.tag.endswith("svg")
    assert float((root.get("width") or "0").removesuffix("pt")) > 400


def test_markup_escapes_everything_but_markup() -> None:
    assert element("p", "a < b & c", Html("<b>d</b>"), None, 3) == "<p>a &lt; b &amp; c<b>d</b>3</p>"
    assert element("a", "x", href='"><script>', class_="y") == '<a href="&quot;&gt;&lt;script&gt;" class="y">x</a>'
    assert element("input", disabled=True, checked=False, data_go="n") == '<input disabled data-go="n">'
    assert join("<", Html("<br>")) == "&lt;<br>"
    assert data_uri("hi", "text/plain") == "data:text/plain;base64,aGk="
