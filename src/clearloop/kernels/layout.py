"""What the engine reads and writes: the encodings of controllers, plants, surrogates and rewards.

S states, A actions, H observations of history. Rows over lanes that programs and networks read:

- features, for controllers: for each lag 0 … H−1 the S states (less their setpoints) and the A actions of
  that time (row S + a of lag 0 is the action about to be chosen, and must not be read); then S setpoints.
- frame, for dynamics and rewards: the S next states, then for each lag the S states and A actions, then S
  setpoints.
"""

from typing import Any, NamedTuple

import numpy as np

LANES = 256  # stepped together: enough to hide the cost of decoding, few enough for the first-level cache

LINEAR, PROGRAM, FUZZY, PID, NETWORK, GREEDY, SEQUENCE = range(7)
NETWORKS, DERIVATIVE = range(2)
MOVED, DRIVEN, DERIVED = range(3)
FORMULA, CLASSES, VALUE = range(3)
IDENTITY, RELU, TANH, SIGMOID = range(4)
ACTIVATIONS = {"identity": IDENTITY, "relu": RELU, "tanh": TANH, "sigmoid": SIGMOID}

Array = Any


class Policies(NamedTuple):
    """P controllers of one kind. What a kind does not use is empty."""

    kind: int
    numbers: Array
    """[P, n] what distinguishes them; the order is given where each kind is run, in `policies.py` and
    `network_policies.py`"""
    sizes: Array
    """[m] int64: counts that the whole population shares"""
    code: Array
    operand: Array
    """[nodes] all programs, one after the other"""
    spans: Array
    """[P, A + 1] int64: where the program of each action starts, and the last one ends"""
    limits: Array
    """[A, 2]"""
    counts: Array
    """[A] steps from limit to limit, where an action takes only some values; 0: any will do"""


class Networks(NamedTuple):
    """Networks of one shape, one after the other, the networks of a member together; see `network.py`."""

    numbers: Array
    """[total · numbers of each]"""
    total: int
    sizes: Array
    """[layers + 1]"""
    activations: Array
    """[layers]"""


class Dynamics(NamedTuple):
    """Either networks that predict the states' changes, or derivatives to be integrated.

    That is for the states that are MOVED. Those that are DRIVEN follow the job's script; then those that are
    DERIVED follow from the others, one after the other, by programs over the frame of the step.
    """

    kind: int
    ways: Array
    """[S] int64: MOVED, DRIVEN or DERIVED"""
    order: Array
    """[derived] int64: in which states are derived"""
    networks: Networks
    """in each member, one for each state that is moved"""
    code: Array
    operand: Array
    spans: Array
    """[S + 1] the program of each state: its derivative, or what it is derived by; empty if it has none"""
    substeps: int
    dt: float
    bounds: Array
    """[S, 2] the least and the largest that a state can become"""
    absorbing: bool
    """a failed lane stays where it failed, and pays the failure's reward for the rest of the horizon"""
    on_failure: Array
    """[S] values that states take on failure, NaN where they stay"""


class LoweredReward(NamedTuple):
    """A formula and a condition over the frame, or a network over its first rows."""

    kind: int
    code: Array
    operand: Array
    spans: Array
    """[3] the programs of reward and of failure; the second is empty where nothing fails"""
    networks: Networks
    levels: Array
    """[classes] the reward of each class"""
    failing: Array
    """[classes] bool"""


class Job(NamedTuple):
    """Everything but the controllers that a rollout needs."""

    starts: Array
    """[N, S]; or [N, H (S + A)] with a past: for each lag the states and actions of that time"""
    setpoints: Array
    """[N or 1, T, S] at each step, of each start or of all; 0 for states without one. [T, S] is of all"""
    discount: float
    history: int
    script: Array = np.zeros((0, 0, 0))
    """[N or 1, T + 1, D] what the D driven states are, at each step; empty: they stay as they start"""
    noise: Array = np.zeros((0, 0, 0))
    """[N or 1, T, K] what is added to the K states that networks predict, in each step; empty: nothing"""
    steps: int = 0
    """T; 0: as many as there are setpoints. What is derived after the last step sees the setpoint after it,
    if there is one"""


class Outcome(NamedTuple):
    """Filled by the engine, a row per lane. Trajectories have no rows when they were not asked for."""

    returns: Array
    """[lanes] Σ γᵏ r"""
    failed: Array
    """[lanes] bool"""
    states: Array
    """[lanes or 0, T + 1, S]"""
    actions: Array
    """[lanes or 0, T, A]"""
    rewards: Array
    """[lanes or 0, T]"""


class Rows(NamedTuple):
    """Where things stand in a thread's scratch: the first row of each, of LANES numbers."""

    features: int
    frame: int
    action: int
    """A rows, the frame's present actions"""
    reward: int
    fails: int
    """whether this step fails"""
    total: int
    """Σ γᵏ r so far"""
    failed: int
    """whether this or an earlier step failed"""
    held: int
    """the last reward, which a failed lane goes on to pay"""
    loops: int
    """PID: for each loop 2 + `ring` rows: sum of errors, last error, the errors of the window"""
    ring: int
    """(a number of rows, not a place)"""
    slopes: int
    """3 · S rows for the integration"""
    scores: int
    """what a network answers"""
    hidden: int
    """two times the widest layer"""
    widest: int
    """(a number of rows, not a place)"""
    stack: int
    """the rest"""
