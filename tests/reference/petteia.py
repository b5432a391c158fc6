"""Petteia, slowly and plainly, from section 1 of the rules (P1-P20)."""

import re

SIDE_LETTER = "ox"  # 0 natural, 1 black
STONE = ("o", "x")
LEADER = ("O", "X")
EMPTY = "."
DIRECTIONS = ((1, 0), (-1, 0), (0, 1), (0, -1))  # (file, rank)


def square_name(square):
    file, rank = square
    return chr(ord("A") + file) + str(rank + 1)


def parse_square(name):
    return ord(name[0]) - ord("A"), int(name[1:]) - 1


class Game:
    """One game; squares are (file, rank) counted from 0 at natural's left corner."""

    def __init__(self, options):
        self.options = options
        self.board = {(file, rank): EMPTY for file in range(options.cols) for rank in range(options.rows)}
        # P1, P19: each side fills the `stone_rows` rows nearest to it.
        for file in range(options.cols):
            for row in range(options.stone_rows):
                self.board[file, row] = STONE[0]
                self.board[file, options.rows - 1 - row] = STONE[1]
        # P19: the leader stands on the next row, at the leftward centre square as its side sees it.
        if options.leader:
            leftward_centre = (options.cols - 1) // 2
            row = options.stone_rows
            self.board[leftward_centre, row] = LEADER[0]
            self.board[options.cols - 1 - leftward_centre, options.rows - 1 - row] = LEADER[1]
        self._clear_records()
        # P2: who starts.
        self.first_player_due = options.first_player == "random"
        self.to_move = 1 if options.first_player == "black" else 0
        if not self.first_player_due:
            self._begin()

    @classmethod
    def from_text(cls, options, text):
        rows, side, quiet, die = text.split(" ")
        game = cls.__new__(cls)
        game.options = options
        game.board = {}
        for rank, row in zip(reversed(range(options.rows)), rows.split("/"), strict=True):
            file = 0
            for token in re.findall(r"\d+|[oxOX]", row):
                run = int(token) if token.isdigit() else 1
                for _ in range(run):
                    game.board[file, rank] = EMPTY if token.isdigit() else token
                    file += 1
            assert file == options.cols
        game._clear_records()
        game.quiet = int(quiet)
        game.first_player_due = side == "?"
        game.to_move = 0 if side == "?" else SIDE_LETTER.index(side)
        if not game.first_player_due:
            game._begin()
            if die != "-" and not game.is_over:
                game.die = int(die)
        return game

    def _clear_records(self):
        self.quiet = 0  # moves in a row without a capture (P12)
        self.turns = 0  # completed turns by both sides (P20)
        self.die = None  # the die shown for this turn (P16)
        self.stakes_due = 0  # rolls for coins still owed to the capturer (P17)
        self.balance = 0  # natural's running coins (P17)
        self.seen = []  # every position of this game, for P11
        self.is_over = False
        self.winner = None
        self.reason = None

    def copy(self):
        other = Game.__new__(Game)
        other.__dict__.update(self.__dict__)
        other.board = dict(self.board)
        other.seen = list(self.seen)
        return other

    # ---- chance ----

    def chance_outcomes(self):
        if self.is_over:
            return []
        if self.first_player_due:  # P2
            return [(0, 0.5), (1, 0.5)]
        if self.stakes_due:  # P17
            faces = self.options.stake_die
        elif self.options.die_limit and self.die is None:  # P16
            faces = self.options.die_limit
        else:
            return []
        return [(value, 1 / faces) for value in range(1, faces + 1)]

    def apply_chance(self, value):
        assert value in [outcome for outcome, _ in self.chance_outcomes()]
        if self.first_player_due:
            self.first_player_due = False
            self.to_move = value
            self._begin()
        elif self.stakes_due:
            # P17: the capturer is paid by the other side.
            self.balance += value if self.to_move == 0 else -value
            self.stakes_due -= 1
            if self.stakes_due == 0:
                self._finish_turn()
        else:
            self.die = value

    # ---- moves ----

    def _owns(self, side, square):
        return self.board.get(square) in (STONE[side], LEADER[side])

    def _rook_moves(self, side):
        """P3: (from, to, distance) over empty squares only."""
        moves = []
        for start in self.board:
            if not self._owns(side, start):
                continue
            for step_file, step_rank in DIRECTIONS:
                distance = 1
                target = (start[0] + step_file, start[1] + step_rank)
                while self.board.get(target) == EMPTY:
                    moves.append((start, target, distance))
                    distance += 1
                    target = (target[0] + step_file, target[1] + step_rank)
        return moves

    def _captured_by(self, side, start, target):
        """The enemy stones taken when `side` moves start -> target."""
        after = self.copy()
        after.board[target] = after.board[start]
        after.board[start] = EMPTY
        enemy_stone = STONE[1 - side]  # P19: captures are of stones, a leader cannot be captured
        taken = set()
        # P4, P5, P6, P7, P8: the moved piece is one end; exactly one enemy; then another own piece.
        # P19: a leader can be an end (`_owns` counts leaders).
        for step_file, step_rank in DIRECTIONS:
            middle = (target[0] + step_file, target[1] + step_rank)
            far_end = (target[0] + 2 * step_file, target[1] + 2 * step_rank)
            if after.board.get(middle) == enemy_stone and after._owns(side, far_end):
                taken.add(middle)
        # P18: both neighbours of a corner are the capturer's, the moved piece being one of them.
        if self.options.corner_capture:
            last_file, last_rank = self.options.cols - 1, self.options.rows - 1
            for corner in ((0, 0), (0, last_rank), (last_file, 0), (last_file, last_rank)):
                neighbours = [
                    (corner[0] + step_file, corner[1] + step_rank)
                    for step_file, step_rank in DIRECTIONS
                    if (corner[0] + step_file, corner[1] + step_rank) in after.board
                ]
                if (
                    after.board[corner] == enemy_stone
                    and target in neighbours
                    and all(after._owns(side, square) for square in neighbours)
                ):
                    taken.add(corner)
        return sorted(taken)  # file order, then rank

    def legal_moves(self):
        if self.is_over or self.chance_outcomes():
            return []
        quiet_moves, captures = [], []
        for start, target, distance in self._rook_moves(self.to_move):
            if self.options.die_limit and distance > self.die:  # P16
                continue
            taken = self._captured_by(self.to_move, start, target)
            move = f"{square_name(start)} -> {square_name(target)}"
            if taken:
                captures.append(move + " x " + ",".join(square_name(square) for square in taken))
            else:
                quiet_moves.append(move)
        # P15: a player able to capture must (within the die, where there is one).
        if self.options.forced_capture and captures:
            return captures
        return quiet_moves + captures

    def push(self, move):
        assert move in self.legal_moves(), move
        words = move.split(" ")
        start, target = parse_square(words[0]), parse_square(words[2])
        taken = self._captured_by(self.to_move, start, target)
        self.board[target] = self.board[start]
        self.board[start] = EMPTY
        for square in taken:  # P5: none may be declined
            self.board[square] = EMPTY
        self.quiet = 0 if taken else self.quiet + 1
        self.die = None
        if self.options.stake_die and taken:
            self.stakes_due = len(taken)  # P17: the turn finishes after the last of these rolls
        else:
            self._finish_turn()

    # ---- endings ----

    def captures(self, side):
        """Enemy stones taken by `side`: they follow from the pieces missing."""
        at_start = self.options.cols * self.options.stone_rows
        return at_start - list(self.board.values()).count(STONE[1 - side])

    @property
    def margin(self):
        return self.captures(0) - self.captures(1)

    def _begin(self):
        """The first turn of a game or of a loaded position begins."""
        self._record_position()
        self._judge()

    def _finish_turn(self):
        self.turns += 1
        self.to_move = 1 - self.to_move
        self._record_position()
        self._judge()
        # P20, after every other ending was judged.
        if not self.is_over and self.options.max_turns and self.turns >= self.options.max_turns:
            self._end(None, "max_turns")

    def _position(self):
        return tuple(sorted(self.board.items())), self.to_move

    def _record_position(self):
        self.seen.append(self._position())  # P11: the start counts as the first

    def _judge(self):
        """P13: capture target, blocked opponent, draws."""
        mover = 1 - self.to_move
        for side in (mover, self.to_move):
            if self.captures(side) >= self.options.capture_target:  # P9
                return self._end(side, "captures")
        if not self._rook_moves(self.to_move):  # P10, P16: looks at unlimited moves
            return self._end(mover, "blocked")
        limit = self.options.repetition_limit
        if limit and self.seen.count(self._position()) >= limit:  # P11
            return self._stall("repetition")
        if self.options.quiet_limit and self.quiet >= self.options.quiet_limit:  # P12
            return self._stall("quiet")
        return None

    def _stall(self, reason):
        if self.options.stalled_result == "most_captures" and self.margin != 0:  # P14
            self._end(0 if self.margin > 0 else 1, "stalled")
        else:
            self._end(None, reason)

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
        die = "-" if self.die is None else str(self.die)
        return f"{'/'.join(rows)} {side} {self.quiet} {die}"


def perft(game, depth):
    """Leaves after `depth` moves; chance costs no depth; an ended game has none."""
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
