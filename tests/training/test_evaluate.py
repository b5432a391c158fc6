import dataclasses
import io
import json
from collections.abc import Sequence

import numpy as np
import pytest
from rich.console import Console

from tradgames_env.agents.base import BaseAgent
from tradgames_env.position import Position
from tradgames_env.rules.ruleset import Ruleset, load_ruleset
from training.evaluate import agreed_ruleset, evaluate, load_players, print_evaluation
from training.match import AgentError, play_match, replay


class Chooser(BaseAgent):
    """Plays the first legal move whose notation begins with a word, and notes what it is asked."""

    def __init__(self, word: str, name: str | None = None) -> None:
        super().__init__()
        self.word = word
        self.name = name or word
        self.batches: list[int] = []

    def act(self, position: Position) -> str:
        return next(move for move in position.legal_moves() if move.startswith(self.word))

    def act_many(self, positions: Sequence[Position]) -> list[str]:
        self.batches.append(len(positions))
        return super().act_many(positions)


class Meddler(Chooser):
    """Plays on with the positions it is handed."""

    def act(self, position: Position) -> str:
        move = super().act(position)
        while not position.is_over:
            position.push(position.legal_actions()[0])
        return move


@pytest.fixture
def racing(sprint: str) -> Ruleset:
    return load_ruleset(sprint)


def test_wins_draws_and_losses_are_counted_from_the_first_agents_side(racing: Ruleset) -> None:
    result = play_match(Chooser("run"), Chooser("wait"), racing, games=20, opening_plies=0)
    assert (result.wins, result.draws, result.losses) == (20, 0, 0)
    assert (result.score, result.pair_scores) == (1.0, (2.0,) * 10)
    assert result.by_side == {"natural": (10, 0, 0), "black": (10, 0, 0)}
    assert result.by_reason == {"home": (20, 0, 0)}
    assert result.score_interval[0] < 1.0 == result.score_interval[1]
    reverse = play_match(Chooser("wait"), Chooser("run"), racing, games=20, opening_plies=0)
    assert (reverse.wins, reverse.losses, reverse.score) == (0, 20, 0.0)


def test_stopped_games_count_as_draws_and_are_listed(racing: Ruleset) -> None:
    result = play_match(Chooser("wait"), Chooser("wait", "idle"), racing, games=6, opening_plies=0)
    assert (result.draws, result.truncated, result.score) == (6, 6, 0.5)
    assert result.by_reason == {"max_turns": (0, 6, 0)}
    assert result.mean_length == 200


def test_endless_games_are_stopped(sprint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("training.match.MAX_PLIES", 30)
    endless = load_ruleset(sprint, max_turns=0)
    result = play_match(Chooser("wait"), Chooser("wait", "idle"), endless, games=2, opening_plies=0)
    assert result.by_reason == {"match limit": (0, 2, 0)}
    assert result.truncated == 2


def test_pairs_share_opening_and_dice_with_sides_swapped(racing: Ruleset) -> None:
    result = play_match("random", "random", load_ruleset("puluc"), games=16, seed=3, opening_plies=5)
    for first, second in zip(result.records[::2], result.records[1::2], strict=True):
        assert first.pair == second.pair
        assert (first.agent_side, second.agent_side) == (0, 1)
        assert (first.dice, first.opening, second.opening) == (second.dice, 5, 5)
        assert first.actions[:5] == second.actions[:5]
    assert len({record.actions[:5] for record in result.records}) > 4
    assert len({record.dice for record in result.records}) == 8


def test_same_agents_and_same_dice_make_the_same_game_twice(racing: Ruleset) -> None:
    result = play_match(Chooser("run"), Chooser("run", "runner"), racing, games=40, opening_plies=3)
    assert set(result.pair_scores) == {1.0}
    assert result.repeated >= 0.5


def test_repeated_games_are_told(racing: Ruleset) -> None:
    fixed = load_ruleset("petteia", "mini")
    result = play_match(Chooser(""), Chooser("", "same"), fixed, games=10, opening_plies=0)
    assert result.repeated == pytest.approx(0.9)


def test_the_seed_decides(racing: Ruleset) -> None:
    one, again, other = (play_match("random", "random", racing, games=10, seed=seed) for seed in (1, 1, 2))
    assert one.records == again.records
    assert one.records != other.records


def test_records_replay_to_the_same_end(game: str, variant: str) -> None:
    ruleset = load_ruleset(game, variant)
    result = play_match("random", "random", ruleset, games=2, seed=8)
    for record in result.records:
        frames = list(replay(ruleset, record))
        assert len(frames) == len(record.actions) + 1
        assert frames[-1].position.text() == record.final
        assert frames[-1].position.winner == record.winner
        assert [frame.in_opening for frame in frames].count(True) == record.opening + 1
        assert frames[0].move is None
        assert all(frame.move for frame in frames[1:])


def test_openings_never_end_a_game(sprint: str) -> None:
    short = load_ruleset(sprint, length=2)
    result = play_match("random", "random", short, games=60, opening_plies=6)
    assert result.games == 60
    assert all(record.opening < len(record.actions) for record in result.records)
    assert {record.opening for record in result.records} - {6}


def test_games_run_in_lockstep(racing: Ruleset) -> None:
    agent = Chooser("run")
    play_match(agent, Chooser("wait"), racing, games=64, opening_plies=0, lockstep=32)
    assert 8 <= max(agent.batches) <= 32


def test_agents_cannot_touch_the_games(racing: Ruleset) -> None:
    honest = play_match(Chooser("run"), Chooser("wait"), racing, games=10, seed=4, opening_plies=1)
    meddling = play_match(Meddler("run"), Meddler("wait"), racing, games=10, seed=4, opening_plies=1)
    assert honest.records == meddling.records


def test_agents_do_not_foresee_throws(racing: Ruleset) -> None:
    foreseen: list[tuple[int, str]] = []

    class Seer(Chooser):
        def act(self, position: Position) -> str:
            turn = position.turns
            position.push("wait")
            foreseen.append((turn, position.text()))
            return "wait"

    # Everybody waits and both games of a pair throw alike, so a turn has one position in both.
    result = play_match(Seer("wait"), Seer("wait", "other"), racing, games=2, opening_plies=0)
    played = [frame.position.text() for frame in replay(racing, result.records[0])]
    assert len(foreseen) > 350
    assert 0.4 < np.mean([text == played[turn + 1] for turn, text in foreseen]) < 0.6


def test_illegal_moves_are_reported_with_the_agents_name(racing: Ruleset) -> None:
    class Cheat(Chooser):
        def act(self, position: Position) -> str:
            return "run 9000 miles" if position.turns > 4 else "fly"

    with pytest.raises(AgentError, match=r"cheat played an illegal move.*fly"):
        play_match(Cheat("", "cheat"), "random", racing, games=2, opening_plies=0)


def test_a_wrong_number_of_moves_is_reported(racing: Ruleset) -> None:
    class Lazy(Chooser):
        def act_many(self, positions: Sequence[Position]) -> list[str]:
            return ["run"]

    with pytest.raises(AgentError, match=r"lazy gave 1 moves for \d+ positions"):
        play_match(Lazy("", "lazy"), "random", racing, games=8, opening_plies=0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"games": 3}, "even number"),
        ({"games": 0}, "even number"),
        ({"opening_plies": -1}, "opening_plies must be 0 or more"),
        ({"lockstep": 1}, "lockstep 2 or more"),
    ],
)
def test_numbers_out_of_range_are_refused(racing: Ruleset, settings: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        play_match("random", "random", racing, **settings)  # type: ignore[arg-type]


def interrupted_after(calls: int) -> Chooser:
    class Impatient(Chooser):
        def act_many(self, positions: Sequence[Position]) -> list[str]:
            if len(self.batches) == calls:
                raise KeyboardInterrupt
            return super().act_many(positions)

    return Impatient("run")


def test_ctrl_c_keeps_whole_pairs(racing: Ruleset) -> None:
    result = play_match(interrupted_after(40), Chooser("wait"), racing, games=1000, opening_plies=0, lockstep=6)
    assert result.stopped
    assert 0 < result.games < 1000
    assert result.games == 2 * len(result.pair_scores)
    assert result.score == 1.0


def test_evaluation_rates_everybody_and_is_json(racing: Ruleset) -> None:
    evaluation = evaluate(Chooser("run"), ["random", Chooser("wait")], racing, games=20, all_pairs=True)
    assert [(match.agent, match.opponent) for match in evaluation.matches] == [
        ("run", "random"),
        ("run", "wait"),
        ("random", "wait"),
    ]
    assert evaluation.anchor == "random"
    assert [rating.name for rating in evaluation.ratings] == ["run", "random", "wait"]
    data = json.loads(json.dumps(evaluation.to_json(), allow_nan=False))
    match = data["matches"][1]
    assert (match["wins"], match["score"], match["games"]) == (20, 1.0, 20)
    assert match["win_rate_interval"] == pytest.approx([0.8389, 1.0], abs=1e-4)
    assert (data["game"], data["variant"], data["rules_version"]) == ("sprint", "box", 1)
    assert sum(match["by_side"]["natural"]) == 10


def test_evaluation_stops_at_ctrl_c_and_keeps_what_was_played(racing: Ruleset) -> None:
    quitter = interrupted_after(30)
    evaluation = evaluate(quitter, [Chooser("wait"), "random", "greedy"], racing, games=200, lockstep=20)
    assert evaluation.stopped
    assert [match.opponent for match in evaluation.matches] == ["wait"]
    console = Console(width=160, record=True, file=io.StringIO())
    print_evaluation(evaluation, console)
    assert "Stopped early" in console.export_text()


def test_interrupted_before_the_first_pair_there_is_nothing(racing: Ruleset) -> None:
    evaluation = evaluate(interrupted_after(0), ["random"], racing, games=2)
    assert evaluation.stopped
    assert (evaluation.matches, evaluation.ratings) == ((), ())
    print_evaluation(evaluation, Console(file=io.StringIO()))
    json.dumps(evaluation.to_json(), allow_nan=False)


def test_tables_show_scores_intervals_and_warnings(racing: Ruleset) -> None:
    evaluation = evaluate(Chooser("wait"), [Chooser("wait", "[b]idle[/b]")], racing, games=6, opening_plies=0)
    console = Console(width=160, record=True, file=io.StringIO())
    print_evaluation(evaluation, console)
    text = console.export_text()
    assert "50.0 % (" in text
    assert "6 stopped games count as draws" in text
    assert "[b]idle[/b]" in text


def test_players_have_one_name_each() -> None:
    with pytest.raises(ValueError, match=r"'greedy' is named twice"):
        load_players(["greedy", "random", "greedy"])


def test_evaluation_needs_an_opponent_and_an_anchor_that_plays(racing: Ruleset) -> None:
    with pytest.raises(ValueError, match="at least one opponent"):
        evaluate("random", [], racing)
    with pytest.raises(ValueError, match=r"anchor 'mcts' does not play; players: random, greedy"):
        evaluate("random", ["greedy"], racing, anchor="mcts")


@dataclasses.dataclass
class Trained:
    """What ``agreed_ruleset`` looks at in a network agent."""

    rulesets: tuple[Ruleset, ...]


def test_a_checkpoint_says_what_is_played() -> None:
    trained = load_ruleset("petteia", "fr6", quiet_limit=60)
    players = {"runs/a": Trained((trained,)), "random": Chooser("")}
    assert agreed_ruleset(players, None, None, {}) is trained  # type: ignore[arg-type]
    assert agreed_ruleset(players, "petteia", "fr6", {}) is trained  # type: ignore[arg-type]
    assert agreed_ruleset(players, None, None, {"quiet_limit": 60}) is trained  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asked_game", "asked_variant", "options", "wanted"),
    [
        ("puluc", None, {}, "puluc/box"),
        (None, "box", {}, "petteia/box"),
        (None, None, {"quiet_limit": 50}, r"petteia/fr6\+quiet_limit=50"),
    ],
)
def test_contradicting_a_checkpoint_is_refused(
    asked_game: str | None, asked_variant: str | None, options: dict[str, int], wanted: str
) -> None:
    players = {"runs/a": Trained((load_ruleset("petteia", "fr6", quiet_limit=60),))}
    with pytest.raises(ValueError, match=rf"checkpoint runs/a plays petteia/fr6\+quiet_limit=60 and cannot .*{wanted}"):
        agreed_ruleset(players, asked_game, asked_variant, options)  # type: ignore[arg-type]


def test_two_checkpoints_must_play_the_same_game() -> None:
    players = {"a": Trained((load_ruleset("petteia", "fr6"),)), "b": Trained((load_ruleset("puluc"),))}
    with pytest.raises(ValueError, match="checkpoint b plays puluc/box and cannot play petteia/fr6"):
        agreed_ruleset(players, None, None, {})  # type: ignore[arg-type]


def test_of_several_games_one_is_named_or_shared() -> None:
    games = load_ruleset("puluc", "mini"), load_ruleset("yote")
    both = {"runs/a": Trained(games)}
    with pytest.raises(
        ValueError, match=r"which game\? the checkpoint runs/a plays puluc/mini and yote/box, so name one"
    ):
        agreed_ruleset(both, None, None, {})  # type: ignore[arg-type]
    assert agreed_ruleset(both, "puluc", None, {}) is games[0]  # type: ignore[arg-type]
    assert agreed_ruleset(both, None, "box", {}) is games[1]  # type: ignore[arg-type]
    assert agreed_ruleset({**both, "b": Trained(games[1:])}, None, None, {}) is games[1]  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="plays puluc/mini and yote/box and cannot play puluc/box"):
        agreed_ruleset(both, "puluc", "box", {})  # type: ignore[arg-type]


def test_without_a_checkpoint_the_game_must_be_named() -> None:
    with pytest.raises(ValueError, match=r"which game\?"):
        agreed_ruleset({"random": Chooser("")}, None, None, {})
    assert agreed_ruleset({"random": Chooser("")}, "yote", None, {"quiet_limit": 40}).label == "yote/box+quiet_limit=40"
