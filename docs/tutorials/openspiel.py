"""OpenSpiel: Puluc as an OpenSpiel game with chance nodes, solved, searched, and played against our own agents.

pip install "tradgames-env[openspiel]" cvxpy scipy. Half a minute; TUTORIAL_STEPS is how many games are played.
"""

import os
import sys

import numpy as np
import pyspiel
from open_spiel.python.algorithms import evaluate_bots, mcts, value_iteration

import tradgames_env as tg
from tradgames_env.integrations.openspiel import AgentBot

rounds = int(os.environ.get("TUTORIAL_STEPS", "10"))

# Importing the integration has registered python_petteia, python_puluc, python_yote and python_yut_nori.
game = pyspiel.load_game("python_puluc(variant=mini)")
state = game.new_initial_state()
print(f"{state} waits for the throw {[state.action_to_string(outcome) for outcome, _ in state.chance_outcomes()]}")

# OpenSpiel's value iteration, over all positions of the smallest board; it walks the game recursively. The limit on
# turns is lifted: it is no part of a position's text, by which value iteration tells positions apart.
sys.setrecursionlimit(20_000)
endless = pyspiel.load_game("python_puluc(variant=mini,options=max_turns:30000)")
values = value_iteration.value_iteration(endless, depth_limit=-1, threshold=1e-4, cyclic_game=True)
state.apply_action(1)
print(f"of {len(values)} positions, {state} is worth {values[str(state)]:+.4f} to the first player")
print(f"by our own table it is {tg.load_agent('perfect').value(state.position):+.4f}")

# OpenSpiel's search in Python (its MCTSBot of C++ crashes on every game written in Python) against our greedy agent.
random = np.random.RandomState(1)
search = mcts.MCTSBot(game, 2.0, 20, mcts.RandomRolloutEvaluator(1, random), random_state=random)
greedy = AgentBot("greedy", player=1)
results = [evaluate_bots.evaluate_bots(game.new_initial_state(), [search, greedy], random)[0] for _ in range(rounds)]
print(f"OpenSpiel's MCTS wins {sum(result > 0 for result in results)} of {rounds} games against greedy")

# The other way round: the same search as one of our agents, wherever an agent is taken.
agent = tg.load_agent("openspiel:mcts:20")
print(f"{agent.name} plays {agent.act(tg.Position('yote', 'mini'))} in Yote")
