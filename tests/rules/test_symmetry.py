import re

import numpy as np
import pytest

import tradgames_env as tg
from tradgames_env.encoding import Encoder
from tradgames_env.rules.contract import OUTCOME, OWN, RUNNING, Mirror
from tradgames_env.rules.ruleset import load_ruleset

SYMMETRIC = [
    ("petteia", "box", {}),
    ("petteia", "fr6", {}),
    ("petteia", "mini", {}),
    ("petteia", "box", {"rows": 6, "cols": 9, "capture_target": 7, "forced_capture": True, "corner_capture": True}),
    ("yote", "box", {}),
    ("yote", "mini", {}),
]


def play_alike(one: tg.Position, two: tg.Position, symmetry: Mirror, rng: np.random.Generator) -> None:
    """Play random moves, with their images in ``two``: it stays the image of ``one`` in all that is legal and seen."""
    sites, actions = symmetry
    ruleset = one.ruleset
    encoder = Encoder(ruleset)
    for _ in range(80):
        if one.is_over:
            break
        assert sorted(actions[one.legal_actions()]) == sorted(two.legal_actions())
        action = int(rng.choice(one.legal_actions()))
        one.push(action)
        two.push(int(actions[action]))
        views = []
        for position in (one, two):
            view = encoder.blank_view()
            ruleset.kernels.view(ruleset.params, *position.rows, position.seat, *view)
            views.append(view)
        (plane_one, scalars_one), (plane_two, scalars_two) = views
        assert (plane_one[OWN:] == plane_two[OWN:, sites]).all()
        assert (scalars_one == scalars_two).all()
    assert one.is_over == two.is_over


@pytest.mark.parametrize(("name", "variant", "options"), SYMMETRIC)
def test_a_game_and_its_reflection_stay_reflections(name: str, variant: str, options: dict[str, object]) -> None:
    ruleset = load_ruleset(name, variant, **options)
    mirrored = ruleset.rules.mirror(ruleset.options)
    assert mirrored is not None
    sites, actions = mirrored
    assert (sites[sites] == np.arange(len(sites))).all()
    assert (actions[actions] == np.arange(ruleset.num_actions)).all()
    rng = np.random.default_rng(1)
    for _ in range(4):
        one, two = (tg.Position(name, variant=variant, seed=1, **options) for _ in range(2))
        play_alike(one, two, mirrored, rng)


def turned_position(position: tg.Position, sites: np.ndarray) -> tg.Position:
    """The position with its board turned; nothing but the board, the side to move and what stands beside it counts."""
    ruleset = position.ruleset
    pieces = ruleset.rules.site_pieces(ruleset.options, position.rows[0])
    moved = [""] * len(pieces)
    for site, piece in zip(sites, pieces, strict=True):
        moved[site] = piece or " "
    size = ruleset.layout.width
    ranks = ["".join(moved[begin : begin + size]) for begin in range(0, len(moved), size)]
    board = re.sub(" +", lambda run: str(len(run.group())), "/".join(ranks[::-1]))
    text = " ".join([board, *position.text().split()[1:]])
    return tg.Position.from_text(ruleset.game, text, variant=ruleset.variant)


@pytest.mark.parametrize(("name", "variant"), [("petteia", "box"), ("petteia", "mini"), ("yote", "mini")])
def test_a_game_and_its_turn_stay_turns(name: str, variant: str) -> None:
    ruleset = load_ruleset(name, variant)
    turned = ruleset.rules.turn(ruleset.options)
    assert turned is not None
    sites, actions = turned
    for places in (sites, actions):
        twice = places[places]
        assert (twice != np.arange(len(places))).any()
        assert (twice[twice] == np.arange(len(places))).all()
    rng = np.random.default_rng(1)
    for _ in range(4):
        one = tg.Position(name, variant=variant, seed=1)
        two = turned_position(one, sites)
        play_alike(one, two, turned, rng)


def test_games_without_these_symmetries_say_so() -> None:
    for game in ("puluc", "yut_nori"):
        ruleset = load_ruleset(game)
        assert ruleset.rules.mirror(ruleset.options) is None
        assert ruleset.rules.turn(ruleset.options) is None
    for game, options in (("petteia", {"rows": 6, "cols": 9, "capture_target": 7}), ("yote", {})):
        ruleset = load_ruleset(game, **options)  # type: ignore[arg-type]
        assert ruleset.rules.turn(ruleset.options) is None


@pytest.mark.parametrize(
    "options", [{}, {"leader": True}, {"die_limit": 4}, {"rows": 4, "cols": 4, "capture_target": 3}]
)
def test_scattered_pieces_are_running_positions(options: dict[str, object]) -> None:
    ruleset = load_ruleset("petteia", **options)
    rules, rng = ruleset.rules, np.random.default_rng(2)
    assert rules.scatter is not None
    numbers = set()
    for _ in range(200):
        state = rules.scatter(ruleset.options, rng, 5)
        assert state[OUTCOME] == RUNNING
        pieces = "".join(rules.site_pieces(ruleset.options, state))
        numbers |= {pieces.count("o"), pieces.count("x")}
        again = rules.parse_position(ruleset.options, rules.format_position(ruleset.options, state))
        assert (again == state).all()
    assert numbers == set(range(2, min(5, ruleset.options.stones) + 1))  # type: ignore[attr-defined]
