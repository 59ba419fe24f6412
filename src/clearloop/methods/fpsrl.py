"""Fuzzy particle swarm reinforcement learning (sec. 3.6 of the paper): fuzzy rules, by particle swarms."""

import numpy as np

from clearloop.controllers.fuzzy import NARROWEST, Fuzzy
from clearloop.kernels.layout import FUZZY, Policies
from clearloop.methods.problem import Problem
from clearloop.methods.swarm import Floats, Form, readable, rounded

CENTRES = 2.5
WIDTHS = (0.1, 10.0)
ALPHAS = (1.0, 100.0)


class RuleForm(Form):
    """C rules for each action. A vector holds, action by action: alpha, then rule by rule centres, widths, output."""

    def __init__(self, problem: Problem, rules: int) -> None:
        task = problem.task
        self.task, self.rules, self.symmetric = task, rules, task.symmetric
        self.features = readable(task)
        self.slots = [problem.features.slot(feature) for feature in self.features]
        self.count = problem.features.count
        self.scales = problem.scales[self.slots]
        self.limits = problem.limits
        self.reach = np.abs(task.action_limits).max(axis=1)
        self.pairs, self.middle = divmod(rules, 2) if task.symmetric else (rules, 0)
        d = len(self.features)
        rule = np.concatenate([np.tile([-CENTRES, CENTRES], (d, 1)), np.tile(np.log(WIDTHS), (d, 1)), [[-1.0, 1.0]]])
        base = [[np.log(ALPHAS)], *[rule] * self.pairs, *[rule[d:2*d]] * self.middle]
        self.bounds = np.concatenate(base * len(task.actions))

    def parameters(self, vectors: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """alpha [P, A], centres and widths [P, A, C, D], outputs [P, A, C]: rounded, in the task's units."""
        d, each = len(self.features), 2 * len(self.features) + 1
        x = vectors.reshape(len(vectors), len(self.reach), -1)
        alpha = rounded(np.exp(x[..., 0]))
        rules = x[..., 1 : 1 + self.pairs * each].reshape(*x.shape[:2], self.pairs, each)
        centres = rounded(rules[..., :d] * self.scales)
        widths = np.exp(rules[..., d : 2 * d]) * self.scales
        outputs = rounded(rules[..., -1])
        if self.symmetric:
            middle = np.exp(x[..., None, 1 + self.pairs * each :]) * self.scales if self.middle else widths[:, :, :0]
            nothing = np.zeros_like(middle)
            centres = np.concatenate([centres, nothing, -centres], axis=2)
            widths = np.concatenate([widths, middle, widths], axis=2)
            outputs = np.concatenate([outputs, nothing[..., 0], -outputs], axis=2)
        return alpha, centres, np.maximum(rounded(widths), NARROWEST), outputs

    def policies(self, vectors: Floats) -> Policies:
        alpha, centres, widths, outputs = self.parameters(vectors)
        population, actions = alpha.shape
        numbers = np.zeros((population, actions, self.rules, 1 + 2 * self.count))
        numbers[..., 0] = outputs
        numbers[..., [1 + 2 * slot for slot in self.slots]] = centres
        numbers[..., [2 + 2 * slot for slot in self.slots]] = -1 / (2 * widths**2)
        head = np.stack([np.broadcast_to(self.reach, alpha.shape), alpha], axis=2)
        flat = np.concatenate([head, numbers.reshape(population, actions, -1)], axis=2).reshape(population, -1)
        none = np.zeros(0, np.int64)
        return Policies(FUZZY, flat.astype(np.float32), np.full(actions, self.rules), none, none.astype(np.float32), np.zeros((population, 0), np.int64), self.limits)

    def controller(self, vector: Floats) -> Fuzzy:
        alpha, centres, widths, outputs = (array[0] for array in self.parameters(vector[None]))
        names = [str(feature) for feature in self.features]
        return Fuzzy.model_validate({"outputs": {
            action: {"scale": float(self.reach[a]), "alpha": float(alpha[a]), "rules": [
                {"if": {n: {"center": float(c), "width": float(w)} for n, c, w in zip(names, centres[a, r], widths[a, r])}, "then": float(outputs[a, r])}
                for r in range(self.rules)]} for a, action in enumerate(self.task.action_names)}})
