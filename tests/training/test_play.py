import json
import pathlib
from collections.abc import Iterator

import pytest

from tradgames_env.agents import load_agent
from tradgames_env.agents.base import Agent, BaseAgent
from tradgames_env.position import Position
from training.play import PlayResult, Table


class Screen:
    """Scripted lines in, everything shown out; the input ends after the last line."""

    def __init__(self, *lines: str | type[BaseException]) -> None:
        self._lines: Iterator[str | type[BaseException]] = iter(lines)
        self.shown: list[str] = []
        self.prompts: list[str] = []

    def ask(self, prompt: str) -> str:
        self.prompts.append(prompt)
        line = next(self._lines, EOFError)
        if isinstance(line, str):
            return line
        raise line

    @property
    def text(self) -> str:
        return "\n".join(self.shown)


class Echo(BaseAgent):
    """Always the last legal move."""

    name = "echo"

    def act(self, position: Position) -> str:
        return position.legal_moves()[-1]


def table(
    screen: Screen,
    game: str = "petteia",
    variant: str = "mini",
    *,
    natural: Agent | None = None,
    black: Agent | None = None,
    hint: Agent | None = None,
    text: str | None = None,
    seed: int = 0,
) -> Table:
    if text is None:
        position = Position(game, variant, chance="explicit")
    else:
        position = Position.from_text(game, text, variant, chance="explicit")
    return Table(position, (natural, black), hint_agent=hint, seed=seed, ask=screen.ask, say=screen.shown.append)


def test_a_person_plays_against_an_agent() -> None:
    screen = Screen("A1 -> A2", "quit")
    board = table(screen, black=Echo())
    assert board.play() == PlayResult(finished=False, winner=None, reason=None)
    assert len(board.position.move_stack) == 2
    assert f"echo plays {board.record()['events'][1]['move']}" in screen.text
    assert screen.prompts == ["natural> ", "natural> "]


def test_moves_are_accepted_in_any_spelling_and_by_number() -> None:
    screen = Screen("a1a2", "1", "B1-B2")
    board = table(screen)
    board.play()
    assert len(board.position.move_stack) == 3


def test_wrong_moves_are_explained_and_change_nothing() -> None:
    screen = Screen("fly away", "A1 -> B2", "A1 -> A4", "99", "")
    board = table(screen)
    before = board.position.text()
    board.play()
    assert board.position.text() == before
    assert screen.text.count("Type moves for a list") == 4
    assert "'A1 -> A4' is not legal" in screen.text


def test_two_people_take_turns() -> None:
    screen = Screen("A1 -> A2", "A4 -> A3", "quit")
    table(screen).play()
    assert screen.prompts == ["natural> ", "black> ", "natural> "]


def test_a_person_can_play_black() -> None:
    screen = Screen("quit")
    board = table(screen, natural=Echo())
    board.play()
    assert screen.prompts == ["black> "]
    assert len(board.position.move_stack) == 1


def test_moves_lists_them_with_their_numbers() -> None:
    screen = Screen("moves")
    board = table(screen)
    board.play()
    assert "1: A1 -> A2" in screen.text
    assert f"{len(board.position.legal_moves())}: D1 -> D3" in screen.text


def test_a_number_means_the_move_of_the_list() -> None:
    screen = Screen("3")
    board = table(screen)
    third = board.position.legal_moves()[2]
    board.play()
    assert board.record()["events"] == [{"side": "natural", "move": third}]


def test_undo_takes_back_the_own_move_and_the_reply() -> None:
    screen = Screen("1", "1", "undo", "undo", "undo")
    board = table(screen, black=Echo())
    start = board.position.text()
    board.play()
    assert board.position.text() == start
    assert screen.text.count("There is no move of yours to take back") == 1


def test_undo_at_the_start_as_black_leaves_the_agents_opening_move() -> None:
    screen = Screen("undo")
    board = table(screen, natural=Echo())
    board.play()
    assert len(board.position.move_stack) == 1
    assert "no move of yours" in screen.text


def test_undone_throws_fall_the_same_way_again() -> None:
    screen = Screen("1", "undo", "1")
    table(screen, "puluc", "box", black=Echo(), seed=5).play()
    throws = [line for line in screen.shown if ", throw: " in line]
    first, again = throws[1:3], throws[3:5]
    assert len(throws) == 5
    assert first == again


def test_undo_between_two_decisions_of_one_side() -> None:
    jump = "x5/6/2ox2/6/5x o 5 4 0 - - -"
    screen = Screen("C3 -> E3 x D3", "undo")
    board = table(screen, "yote", "box", text=jump)
    board.play()
    assert board.position.text() == jump
    assert screen.prompts == ["natural> ", "natural> ", "natural> "]


def test_throws_are_shown() -> None:
    screen = Screen()
    board = table(screen, "puluc", "box")
    board.play()
    assert any(line.startswith("natural, throw: ") for line in screen.shown)
    assert board.position.throw is not None


def test_throws_follow_from_the_seed() -> None:
    def shown(seed: int) -> list[str]:
        screen = Screen(*["1"] * 12)
        table(screen, "puluc", "box", seed=seed).play()
        return screen.shown

    assert shown(1) == shown(1)
    assert shown(1) != shown(2)


def test_hint_names_moves_and_what_they_promise() -> None:
    jump = "6/6/2ox2/6/6 o 2 0 0 - - -"
    screen = Screen("hint")
    board = table(screen, "yote", "box", text=jump, hint=load_agent("greedy"))
    board.play()
    assert "greedy would play C3 -> E3 x D3 (100%)" in screen.text
    assert board.position.text() == jump


def test_hint_without_an_agent_and_from_one_that_cannot() -> None:
    screen = Screen("hint")
    table(screen).play()
    assert "There is no agent to ask" in screen.text
    screen = Screen("hint")
    table(screen, "puluc", "box", hint=load_agent("alphabeta:1")).play()
    assert "without dice" in screen.text


def test_help_board_and_text() -> None:
    screen = Screen("help", "?", "board", "text", "HELP")
    board = table(screen)
    board.play()
    assert screen.text.count("save FILE    write the game so far") == 3
    assert screen.shown.count(str(board.position)) == 1
    assert board.position.text() in screen.shown


@pytest.mark.parametrize("leaving", [EOFError, KeyboardInterrupt])
def test_end_of_input_and_ctrl_c_leave_cleanly(leaving: type[BaseException]) -> None:
    screen = Screen("A1 -> A2", leaving)
    result = table(screen).play()
    assert not result.finished
    assert screen.shown[-1] == "\nLeft the game."


def test_ctrl_c_while_the_agent_thinks_leaves_cleanly() -> None:
    class Slow(Echo):
        def act(self, position: Position) -> str:
            raise KeyboardInterrupt

    screen = Screen("A1 -> A2")
    assert not table(screen, black=Slow()).play().finished


def test_a_finished_game_tells_who_won_and_can_be_taken_back() -> None:
    won = "6/6/2ox2/6/6 o 2 0 0 - - -"
    screen = Screen("C3 -> E3", "moves", "+A1", "hint", "resign", "undo")
    board = table(screen, "yote", "box", text=won)
    result = board.play()
    assert "natural wins (captures)." in screen.text
    assert "There are no moves." in screen.text
    assert screen.text.count("The game is over") == 2
    assert "the game is over" in screen.text
    assert not result.finished
    assert board.position.text() == won


def test_a_finished_game_is_the_result() -> None:
    screen = Screen("C3 -> E3", "quit")
    board = table(screen, "yote", "box", text="6/6/2ox2/6/6 o 2 0 0 - - -")
    assert board.play() == PlayResult(finished=True, winner=0, reason="captures")
    assert screen.prompts[-1].startswith("over")


def test_draws_are_told() -> None:
    screen = Screen("C1 -> C7")
    board = table(screen, "petteia", "box", text="xx6/oo6/8/8/8/8/8/2o5 o 99 -")
    assert board.play() == PlayResult(finished=True, winner=None, reason="quiet")
    assert "A draw (quiet)." in screen.text


def test_resigning_gives_the_game_to_the_other_and_can_be_taken_back() -> None:
    screen = Screen("A1 -> A2", "resign")
    result = table(screen).play()
    assert result == PlayResult(finished=True, winner=0, reason="resigned")
    assert "natural wins (resigned)." in screen.text
    screen = Screen("resign", "A1 -> A2", "undo", "A1 -> A2")
    board = table(screen)
    assert not board.play().finished
    assert len(board.position.move_stack) == 1


def test_two_agents_play_to_the_end_without_a_person() -> None:
    screen = Screen()
    result = table(screen, "puluc", "mini", natural=load_agent("random"), black=load_agent("random")).play()
    assert result.finished
    assert screen.prompts == []


def test_save_writes_moves_and_throws(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "my game.json"
    screen = Screen("1", f"save {file}", f"save {file}", "save", f"save {tmp_path}/no/game.json")
    board = table(screen, "puluc", "box", black=Echo(), seed=2)
    start = board.position.text()
    board.play()
    record = json.loads(file.read_text())
    assert (record["game"], record["variant"], record["start"]) == ("puluc", "box", start)
    assert (record["natural"], record["black"], record["result"]) == ("a person", "echo", None)
    position = Position.from_text("puluc", record["start"], chance="explicit")
    for event in record["events"]:
        if "throw" in event:
            position.apply_chance(int(event["throw"]))
        else:
            position.push(event["move"])
    assert position.text() == record["position"]
    assert "exists already" in screen.text
    assert "save needs the name of a file" in screen.text
    assert "cannot write" in screen.text


def test_any_game_can_be_played(game: str, variant: str) -> None:
    screen = Screen(*["moves", "1", "undo", "text", "hint"] + ["1"] * 30)
    board = table(screen, game, variant, black=load_agent("random"), hint=load_agent("greedy"))
    board.play()
    assert len(board.position.move_stack) > 10 or board.position.is_over
