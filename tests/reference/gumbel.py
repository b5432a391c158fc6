"""Gumbel search, slowly and plainly: one position, objects for nodes, every formula over all legal actions.

Values are natural's. Without noise it makes the very visits of ``tradgames_env.search.gumbel``.
"""

import math

OPEN, NATURAL_WON, BLACK_WON, SETTLED = range(4)


class Edge:
    def __init__(self, action, prior):
        self.action = action
        self.prior = prior
        self.child = None
        self.visits = 0
        self.total = 0.0
        self.verdict = OPEN
        self.exact = None

    @property
    def is_known(self):
        return self.visits > 0 or self.verdict != OPEN

    @property
    def value(self):
        return self.exact if self.verdict != OPEN else self.total / self.visits


class Node:
    def __init__(self, position, parent=None, parent_edge=None):
        self.position = position
        self.parent = parent
        self.parent_edge = parent_edge
        self.is_throw = position.chance_due
        self.sign = -1.0 if position.to_move else 1.0
        self.verdict = OPEN
        self.exact = None
        self.raw = None
        if self.is_throw:
            self.edges = [Edge(value, probability) for value, probability in position.chance_outcomes()]
        else:
            self.edges = [Edge(action, None) for action in sorted(position.legal_actions())]

    @property
    def simulations(self):
        return sum(edge.visits for edge in self.edges)

    @property
    def lost(self):
        return NATURAL_WON if self.sign < 0 else BLACK_WON

    @property
    def won(self):
        return BLACK_WON if self.sign < 0 else NATURAL_WON


class Search:
    def __init__(self, evaluate, *, considered=16, c_visit=50.0, c_scale=0.1, margin_weight=0.0):
        self.evaluate = evaluate
        self.considered = considered
        self.c_visit = c_visit
        self.c_scale = c_scale
        self.margin_weight = margin_weight

    def run(self, position, budget):
        """The root of the searched tree."""
        root = Node(position)
        self.judge(root)
        for edge in root.edges:
            after = position.copy()
            after.push(edge.action)
            if after.is_over:
                self.settle(root, edge, after)
        count = len(root.edges)
        candidates = self.consider(root, list(root.edges), self.considered)
        phases = max(1, math.ceil(math.log2(min(self.considered, count))))
        left = budget if count > 1 and root.verdict == OPEN else 0
        while left > 0:
            if root.simulations > 0:
                candidates = self.consider(root, candidates, max(2, len(candidates) // 2))
            for _ in range(max(1, budget // (phases * len(candidates)))):
                for edge in candidates[:left]:
                    self.simulate(root, edge)
                left -= len(candidates[:left])
                if root.verdict != OPEN:
                    left = 0
                elif any(edge.verdict == root.lost for edge in candidates):
                    candidates = self.consider(root, candidates, len(candidates))
        return root

    def consider(self, root, candidates, most):
        candidates = self.rank(root, candidates)
        if candidates[0].verdict == root.lost:
            candidates = self.rank(root, list(root.edges))
        candidates = candidates[:most]
        while len(candidates) > 1 and candidates[-1].verdict == root.lost:
            candidates = candidates[:-1]
        return candidates

    def rank(self, root, candidates):
        score = self.root_scores(root)

        def order(edge):
            return (edge.verdict == root.lost, -score[edge.action] if edge.verdict != root.lost else 0, edge.action)

        return sorted(candidates, key=order)

    def root_scores(self, root):
        sigma, _ = self.completed(root)
        return {edge.action: math.log(edge.prior) + sigma[edge.action] for edge in root.edges}

    def completed(self, node):
        """For each action sigma(q) less its maximum, and the mixed value; both the mover's."""
        known = [edge for edge in node.edges if edge.is_known]
        mixed = node.sign * node.raw
        if known:
            mean = sum(edge.prior * node.sign * edge.value for edge in known) / sum(edge.prior for edge in known)
            mixed = (mixed + node.simulations * mean) / (node.simulations + 1)
        worth = {edge.action: node.sign * edge.value if edge.is_known else mixed for edge in node.edges}
        low, high = min(worth.values()), max(worth.values())
        scale = (self.c_visit + max(edge.visits for edge in node.edges)) * self.c_scale / max(high - low, 1e-8)
        return {action: scale * (value - high) for action, value in worth.items()}, mixed

    def simulate(self, root, edge):
        node = root
        while edge.child is not None and edge.verdict == OPEN:
            node = edge.child
            edge = self.due(node) if node.is_throw else self.behind(node)
        if edge.verdict != OPEN:
            self.back_up(node, edge, edge.exact)
            return
        after = self.follow(node, edge)
        while not after.is_over and after.chance_due:
            edge.child = Node(after, node, edge)
            node, edge = edge.child, self.due(edge.child)
            after = self.follow(node, edge)
        if after.is_over:
            self.settle(node, edge, after)
            self.back_up(node, edge, edge.exact)
            return
        edge.child = Node(after, node, edge)
        self.judge(edge.child)
        self.back_up(node, edge, edge.child.raw)

    def follow(self, node, edge):
        after = node.position.copy()
        if node.is_throw:
            after.apply_chance(edge.action)
        else:
            after.push(edge.action)
        return after

    def due(self, node):
        behind = [edge.prior * (node.simulations + 1) - edge.visits for edge in node.edges]
        return next(edge for edge, share in zip(node.edges, behind, strict=True) if share > max(behind) - 1e-9)

    def behind(self, node):
        sigma, _ = self.completed(node)
        weights = {edge.action: edge.prior * math.exp(sigma[edge.action]) for edge in node.edges}
        total = sum(weights.values())

        def by_how_much(edge):
            return weights[edge.action] / total - edge.visits / (node.simulations + 1)

        return max((edge for edge in node.edges if edge.verdict != node.lost), key=by_how_much)

    def judge(self, node):
        logits, utility = self.evaluate(node.position)
        highest = max(logits[edge.action] for edge in node.edges)
        weights = [math.exp(logits[edge.action] - highest) for edge in node.edges]
        for edge, weight in zip(node.edges, weights, strict=True):
            edge.prior = weight / sum(weights)
        node.raw = node.sign * float(utility)

    def back_up(self, node, edge, value):
        while node is not None:
            edge.visits += 1
            edge.total += value
            node, edge = node.parent, node.parent_edge

    def settle(self, node, edge, after):
        """The game is over behind an edge; so may be all that is above it."""
        payoff = after.rewards[0]
        edge.verdict = SETTLED if payoff == 0 else NATURAL_WON if payoff > 0 else BLACK_WON
        rules = after.ruleset.rules
        edge.exact = max(-1.0, min(1.0, payoff)) + self.margin_weight * after.margin / rules.margin_scale(after.options)
        if node.verdict == edge.verdict == node.won:
            node.exact = node.sign * max(node.sign * node.exact, node.sign * edge.exact)
        while node is not None and node.verdict == OPEN:
            is_certain = all(other.verdict != OPEN for other in node.edges)
            if node.is_throw:
                if not is_certain:
                    return
                verdicts = {other.verdict for other in node.edges}
                node.verdict = verdicts.pop() if len(verdicts) == 1 else SETTLED
                node.exact = sum(other.prior * other.exact for other in node.edges)
            else:
                if edge.verdict == node.won:
                    best = edge
                elif is_certain:
                    best = max(node.edges, key=lambda other, sign=node.sign: sign * other.exact)
                else:
                    return
                node.verdict, node.exact = best.verdict, best.exact
            if node.parent_edge is not None:
                node.parent_edge.verdict, node.parent_edge.exact = node.verdict, node.exact
            edge, node = node.parent_edge, node.parent
