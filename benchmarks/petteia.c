/* The yardstick for tradgames_env: Petteia, box rules, random playouts, in plain C.
 *
 *   gcc -O3 -march=native petteia.c -o petteia
 *   ./petteia play MOVES SEED     random legal moves, games restarted when over; prints one line of "name value" pairs
 *   ./petteia perft DEPTH         number of positions after DEPTH moves
 *
 * Rules (ids of the rulebook): 8 x 8 board, 8 stones a side (P1), rook moves (P3), custodial capture by the stone that
 * moved (P4 to P8), 7 captures win (P9), who cannot move loses (P10), a position's third occurrence (P11) and 100 moves
 * in a row without a capture (P12) are draws, judged in this order (P13).
 *
 * A stone moves along a line between its nearest neighbours, so one table look-up for each line of each stone counts
 * its moves, and the k-th is picked without listing any. Of each side the board is kept twice, by ranks and by files:
 * byte i of the one is rank i, byte i of the other is file i. This is the plain way, not the fastest there is: counting
 * the moves of all stones at once, by filling the 64 bits in each direction, and picking the k-th with the pdep
 * instruction was measured at 1.5 times this speed. It works on no board of more than 64 squares; the package fills four
 * lines at a time, and selects with plain arithmetic, for boards of up to 12 x 12.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TARGET = 7, OCCURRENCES = 3, QUIET = 100, SIDES = 2, SQUARES = 64 };
enum ending { RUNNING, CAPTURES, BLOCKED, REPETITION, QUIET_MOVES, ENDINGS };

typedef union { uint64_t all; uint8_t line[8]; } board;

typedef struct {
    board rank[SIDES], file[SIDES];
    int mover, captures[SIDES], quiet;
    uint64_t hash;
    uint64_t history[QUIET + 1]; /* positions since the last capture, this one last; captures cannot be undone */
} game;

static uint8_t lowest[8][256];   /* lowest goal of a stone on this square of a line, given what stands on the line */
static uint8_t number[8][256];   /* how many goals it has; they are neighbours, but for its own square */
static uint64_t key[SIDES][SQUARES], turn_key;

static uint64_t next_random(uint64_t *word) /* splitmix64 */
{
    uint64_t z = *word += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static void make_tables(void)
{
    uint64_t word = 1;
    for (int at = 0; at < 8; at++)
        for (int line = 0; line < 256; line++) {
            int low = at, high = at;
            while (low > 0 && !(line >> (low - 1) & 1)) low--;
            while (high < 7 && !(line >> (high + 1) & 1)) high++;
            lowest[at][line] = low;
            number[at][line] = high - low;
        }
    for (int side = 0; side < SIDES; side++)
        for (int square = 0; square < SQUARES; square++) key[side][square] = next_random(&word);
    turn_key = next_random(&word);
}

static void start(game *g)
{
    memset(g, 0, sizeof *g);
    g->rank[0].line[0] = g->rank[1].line[7] = 0xFF;
    for (int file = 0; file < 8; file++) g->file[0].line[file] = 0x01, g->file[1].line[file] = 0x80;
    for (int file = 0; file < 8; file++) g->hash ^= key[0][file] ^ key[1][56 + file];
    g->history[0] = g->hash;
}

static void flip(game *g, int side, int square)
{
    g->rank[side].all ^= 1ull << square;
    g->file[side].all ^= 1ull << ((square & 7) << 3 | square >> 3);
    g->hash ^= key[side][square];
}

static int can_move(const game *g, int side)
{
    uint64_t own = g->rank[side].all, empty = ~(own | g->rank[!side].all);
    uint64_t beside = (own & 0x7F7F7F7F7F7F7F7Full) << 1 | (own & 0xFEFEFEFEFEFEFEFEull) >> 1;
    return ((beside | own << 8 | own >> 8) & empty) != 0;
}

/* Take what the stone that has come to this square captures; how many. */
static int capture(game *g, int side, int goal)
{
    int rank = goal >> 3, file = goal & 7, prey = !side, taken = 0;
    int enemy_rank = g->rank[prey].line[rank], own_rank = g->rank[side].line[rank];
    int enemy_file = g->file[prey].line[file], own_file = g->file[side].line[file];
    int left = enemy_rank << 1 >> file & own_rank << 2 >> file & 1;
    int right = enemy_rank >> (file + 1) & own_rank >> (file + 2) & 1;
    int down = enemy_file << 1 >> rank & own_file << 2 >> rank & 1;
    int up = enemy_file >> (rank + 1) & own_file >> (rank + 2) & 1;
    if (left | right | down | up) {
        if (left) flip(g, prey, goal - 1), taken++;
        if (right) flip(g, prey, goal + 1), taken++;
        if (down) flip(g, prey, goal - 8), taken++;
        if (up) flip(g, prey, goal + 8), taken++;
    }
    return taken;
}

static enum ending play(game *g, int square, int goal)
{
    int side = g->mover;
    flip(g, side, square);
    flip(g, side, goal);
    g->hash ^= turn_key;
    int taken = capture(g, side, goal);
    g->captures[side] += taken;
    g->mover = !side;
    int repeats = 0;
    if (taken) {
        g->quiet = 0;
    } else {
        for (int i = 0; i <= g->quiet; i++) repeats += g->history[i] == g->hash;
        g->quiet++;
    }
    g->history[g->quiet] = g->hash;
    if (g->captures[side] >= TARGET) return CAPTURES;
    if (!can_move(g, !side)) return BLOCKED;
    if (repeats + 1 >= OCCURRENCES) return REPETITION;
    return g->quiet >= QUIET ? QUIET_MOVES : RUNNING;
}

static int count_along(const game *g, int square, int *along_rank, int *along_file)
{
    int rank = square >> 3, file = square & 7;
    *along_rank = g->rank[0].line[rank] | g->rank[1].line[rank];
    *along_file = g->file[0].line[file] | g->file[1].line[file];
    return number[file][*along_rank] + number[rank][*along_file];
}

/* The k-th goal of the stone on this square. */
static int kth_goal(const game *g, int square, int k)
{
    int along_rank, along_file, rank = square >> 3, file = square & 7;
    count_along(g, square, &along_rank, &along_file);
    int on_rank = number[file][along_rank];
    if (k < on_rank) {
        int goal = lowest[file][along_rank] + k;
        return rank << 3 | (goal + (goal >= file));
    }
    int goal = lowest[rank][along_file] + k - on_rank;
    return (goal + (goal >= rank)) << 3 | file;
}

static enum ending play_random(game *g, uint64_t *word)
{
    int counts[16], squares[16], stones = 0, total = 0, along_rank, along_file;
    for (uint64_t left = g->rank[g->mover].all; left; left &= left - 1) {
        squares[stones] = __builtin_ctzll(left);
        total += counts[stones] = count_along(g, squares[stones], &along_rank, &along_file);
        stones++;
    }
    int k = (int)((next_random(word) >> 32) * (uint64_t)total >> 32), i = 0;
    while (k >= counts[i]) k -= counts[i++];
    return play(g, squares[i], kth_goal(g, squares[i], k));
}

static uint64_t perft(const game *g, int depth)
{
    uint64_t leaves = 0;
    if (depth == 0) return 1;
    for (uint64_t left = g->rank[g->mover].all; left; left &= left - 1) {
        int square = __builtin_ctzll(left), along_rank, along_file;
        int goals = count_along(g, square, &along_rank, &along_file);
        for (int k = 0; k < goals; k++) {
            game next = *g;
            if (play(&next, square, kth_goal(g, square, k)) == RUNNING || depth == 1) leaves += perft(&next, depth - 1);
        }
    }
    return leaves;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void playouts(uint64_t moves, uint64_t seed)
{
    game g;
    uint64_t word = seed, ended[ENDINGS] = {0}, games = 0, finished_moves = 0, length = 0;
    double begin = now();
    start(&g);
    for (uint64_t i = 0; i < moves; i++) {
        enum ending ending = play_random(&g, &word);
        length++;
        if (ending != RUNNING) {
            ended[ending]++;
            games++;
            finished_moves += length;
            length = 0;
            start(&g);
        }
    }
    double seconds = now() - begin;
    printf("moves %llu seconds %.9f games %llu finished_moves %llu captures %llu blocked %llu repetition %llu quiet %llu\n",
           (unsigned long long)moves, seconds, (unsigned long long)games, (unsigned long long)finished_moves,
           (unsigned long long)ended[CAPTURES], (unsigned long long)ended[BLOCKED],
           (unsigned long long)ended[REPETITION], (unsigned long long)ended[QUIET_MOVES]);
}

int main(int argc, char **argv)
{
    make_tables();
    if (argc == 4 && !strcmp(argv[1], "play")) {
        playouts(strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
    } else if (argc == 3 && !strcmp(argv[1], "perft")) {
        game g;
        start(&g);
        printf("%llu\n", (unsigned long long)perft(&g, atoi(argv[2])));
    } else {
        fprintf(stderr, "usage: %s play MOVES SEED | perft DEPTH\n", argv[0]);
        return 2;
    }
    return 0;
}
