"""Yote, slowly and plainly, from section 3 of the rules (Y1-Y9)."""

import re

SIDE_LETTER = "ox"  # 0 natural, 1 black
EMPTY = "."
DIRECTIONS = ((1, 0), (-1, 0), (0, 1), (0, -1))  # (file, rank)


def square_name(square):
    file, rank = square
    return chr(ord("A") + file) + str(rank + 1)


def parse_square(name):
    return ord(name[0]) - ord("A"), int(name[1:]) - 1


def parse_step(text):
    """`C4C3` -> (from, to); `-` -> None."""
    if text == "-":
        return None
    start, target = re.findall(r"[A-Z]\d+", text)
    return parse_square(start), parse_square(target)


def step_name(step):
    return "-" if step is None else square_name(step[0]) + square_name(step[1])


class Game:
    """One game; squares are (file, rank) counted from 0 at natural's left corner."""

    def __init__(self, options):
        self.options = options
        # Y1: an empty board, all pieces in the reserves.
        self.board = {(file, rank): EMPTY for file in range(options.cols) for rank in range(options.rows)}
        self.reserve = [options.pieces, options.pieces]
        self.quiet = 0  # steps in a row without placement or capture (Y8)
        self.ban = [None, None]  # each side's forbidden step (Y5)
        self.bonus_owed = False  # Y3
        self._clear_records()
        # Y1 natural starts, unless `first_player` says otherwise.
        self.first_player_due = options.first_player == "random"
        self.to_move = 1 if options.first_player == "black" else 0
        if not self.first_player_due:
            self._begin()

    @classmethod
    def from_text(cls, options, text):
        rows, side, natural, black, quiet, natural_ban, black_ban, bonus = text.split(" ")
        game = cls.__new__(cls)
        game.options = options
        game.board = {}
        for rank, row in zip(reversed(range(options.rows)), rows.split("/"), strict=True):
            file = 0
            for token in re.findall(r"\d+|[ox]", row):
                run = int(token) if token.isdigit() else 1
                for _ in range(run):
                    game.board[file, rank] = EMPTY if token.isdigit() else token
                    file += 1
            assert file == options.cols
        game.reserve = [int(natural), int(black)]
        game.quiet = int(quiet)
        game.ban = [parse_step(natural_ban), parse_step(black_ban)]
        game.bonus_owed = bonus == "bonus"
        game._clear_records()
        game.first_player_due = side == "?"
        game.to_move = 0 if side == "?" else SIDE_LETTER.index(side)
        # Y9: nothing is judged between a jump and its bonus.
        if not game.first_player_due and not game.bonus_owed:
            game._begin()
        return game

    def _clear_records(self):
        self.turns = 0  # completed turns by both sides
        self.seen = []  # every position after a complete turn, for Y8
        self.is_over = False
        self.winner = None
        self.reason = None

    def copy(self):
        other = Game.__new__(Game)
        other.__dict__.update(self.__dict__)
        other.board = dict(self.board)
        other.reserve = list(self.reserve)
        other.ban = list(self.ban)
        other.seen = list(self.seen)
        return other

    # ---- chance ----

    def chance_outcomes(self):
        return [(0, 0.5), (1, 0.5)] if self.first_player_due else []

    def apply_chance(self, value):
        assert self.first_player_due
        assert value in (0, 1)
        self.first_player_due = False
        self.to_move = value
        self._begin()

    # ---- moves ----

    def legal_moves(self):
        if self.is_over or self.first_player_due:
            return []
        return self._actions()

    def _actions(self):
        """What the side to move can do, whether or not the game has been called over."""
        own, enemy = SIDE_LETTER[self.to_move], SIDE_LETTER[1 - self.to_move]
        # Y3: the bonus is compulsory: any one enemy piece on the board.
        if self.bonus_owed:
            return [f"* {square_name(sq)}" for sq, piece in self.board.items() if piece == enemy]
        moves = []
        for square, piece in self.board.items():
            # Y2: place a reserve piece on any empty square.
            if piece == EMPTY and self.reserve[self.to_move] > 0:
                moves.append(f"+{square_name(square)}")
            if piece != own:
                continue
            for step_file, step_rank in DIRECTIONS:
                near = (square[0] + step_file, square[1] + step_rank)
                far = (square[0] + 2 * step_file, square[1] + 2 * step_rank)
                # Y2: step to an adjacent empty square, but Y5: not straight back.
                if self.board.get(near) == EMPTY and self.ban[self.to_move] != (square, near):
                    moves.append(f"{square_name(square)} -> {square_name(near)}")
                # Y2: jump over exactly one enemy to the empty square behind. Y5: jumps are exempt.
                # Y4: capturing is never compulsory.
                if self.board.get(near) == enemy and self.board.get(far) == EMPTY:
                    moves.append(f"{square_name(square)} -> {square_name(far)} x {square_name(near)}")
        return moves  # Y4: no passing

    def push(self, move):
        assert move in self.legal_moves(), move
        side, enemy = self.to_move, 1 - self.to_move
        words = move.split(" ")
        if words[0] == "*":
            # Y3: the second decision of the same turn.
            self._remove_enemy(parse_square(words[1]))
            self.bonus_owed = False
            self._finish_turn()
            return
        self.ban[side] = None  # Y5: anything else played in between lifts the ban
        if move.startswith("+"):
            self.board[parse_square(move[1:])] = SIDE_LETTER[side]
            self.reserve[side] -= 1
            self.quiet = 0
            self._finish_turn()
            return
        start, target = parse_square(words[0]), parse_square(words[2])
        self.board[start] = EMPTY
        self.board[target] = SIDE_LETTER[side]
        if len(words) == 3:
            if self.options.return_ban == "immediate":
                self.ban[side] = (target, start)  # Y5: the forbidden step is the way back
            self.quiet += 1
            self._finish_turn()
            return
        self._remove_enemy(parse_square(words[4]))
        self.quiet = 0
        if SIDE_LETTER[enemy] in self.board.values():
            self.bonus_owed = True  # Y3: the mover chooses; the turn is not complete
            return
        # Y3: none on the board: one is taken from the reserve, if any is left there.
        if self.reserve[enemy] > 0:
            self.reserve[enemy] -= 1
        self._finish_turn()

    def _remove_enemy(self, square):
        enemy = 1 - self.to_move
        self.board[square] = EMPTY
        if self.ban[enemy] is not None and self.ban[enemy][0] == square:
            self.ban[enemy] = None  # the ban goes with its piece

    # ---- endings ----

    def pieces_left(self, side):
        """Board and reserve."""
        return list(self.board.values()).count(SIDE_LETTER[side]) + self.reserve[side]

    @property
    def margin(self):
        """Natural's captured pieces less black's."""
        captured = [self.options.pieces - self.pieces_left(1 - side) for side in (0, 1)]
        return captured[0] - captured[1]

    def _begin(self):
        """The first turn of a game or of a loaded position begins."""
        self._record_position()
        self._judge()

    def _finish_turn(self):
        self.turns += 1
        self.to_move = 1 - self.to_move
        self._record_position()
        self._judge()
        # After every other ending was judged.
        if not self.is_over and self.options.max_turns and self.turns >= self.options.max_turns:
            self._end(None, "max_turns")

    def _position(self):
        """Y8: board, reserves, bans and side to move."""
        board = tuple(sorted(self.board.items()))
        return board, tuple(self.reserve), tuple(self.ban), self.to_move

    def _record_position(self):
        self.seen.append(self._position())

    def _judge(self):
        """Y9: all captured, opponent without action, draws."""
        mover = 1 - self.to_move
        for side in (mover, self.to_move):
            if self.pieces_left(1 - side) == 0:  # Y6
                return self._end(side, "captures")
        if not self._actions():  # Y7
            return self._end(mover, "blocked")
        # Y8
        limit = self.options.repetition_limit
        if limit and self.seen.count(self._position()) >= limit:
            return self._end(None, "repetition")
        if self.options.quiet_limit and self.quiet >= self.options.quiet_limit:
            return self._end(None, "quiet")
        few = self.options.few_pieces_draw
        if few and self.pieces_left(0) <= few and self.pieces_left(1) <= few:
            return self._end(None, "few_pieces")
        return None

    def _end(self, winner, reason):
        self.is_over = True
        self.winner = winner
        self.reason = reason

    # ---- text ----

    def text(self):
        rows = []
        for rank in reversed(range(self.options.rows)):
            row = "".join(self.board[file, rank] for file in range(self.options.cols))
            rows.append(re.sub(r"\.+", lambda run: str(len(run.group())), row))
        side = "?" if self.first_player_due else SIDE_LETTER[self.to_move]
        fields = [
            "/".join(rows),
            side,
            str(self.reserve[0]),
            str(self.reserve[1]),
            str(self.quiet),
            step_name(self.ban[0]),
            step_name(self.ban[1]),
            "bonus" if self.bonus_owed else "-",
        ]
        return " ".join(fields)


def perft(game, depth):
    """Leaves after `depth` moves (a bonus is one); chance costs no depth; an ended game has none."""
    if depth == 0:
        return 1
    if game.is_over:
        return 0
    leaves = 0
    outcomes = game.chance_outcomes()
    for value, _ in outcomes:
        child = game.copy()
        child.apply_chance(value)
        leaves += perft(child, depth)
    if not outcomes:
        for move in game.legal_moves():
            child = game.copy()
            child.push(move)
            leaves += perft(child, depth - 1)
    return leaves
