"""The layout defines what the engine reads and writes: controllers, plants, surrogates and rewards as arrays.

There are S states, A actions, and H observations of history. Programs and networks read rows over lanes:

- Features, for controllers: for each lag 0 … H−1 the S states (minus their setpoints) and the A actions of
  that time (row S + a of lag 0 is the action to be chosen, and must not be read); then S setpoints.
- The frame, for dynamics and rewards: the S next states, then for each lag the S states and A actions, then S
  setpoints.
"""

from typing import Any, NamedTuple

import numpy as np

LANES = 256  # advance together: enough to hide the cost of decoding, few enough for the first-level cache

LINEAR, PROGRAM, FUZZY, PID, NETWORK, GREEDY, SEQUENCE = range(7)
NETWORKS, DERIVATIVE = range(2)
MOVED, DRIVEN, DERIVED = range(3)
FORMULA, CLASSES, VALUE = range(3)
IDENTITY, RELU, TANH, SIGMOID = range(4)
ACTIVATIONS = {"identity": IDENTITY, "relu": RELU, "tanh": TANH, "sigmoid": SIGMOID}

Array = Any


class Policies(NamedTuple):
    """P controllers of one kind. Fields that a kind does not use are empty."""

    kind: int
    """LINEAR, PROGRAM, FUZZY, PID, NETWORK, GREEDY or SEQUENCE"""
    numbers: Array
    """[P, n] parameters of each controller; `policies.py` gives their order for each kind"""
    sizes: Array
    """[m] int64: counts that all controllers share"""
    code: Array
    """[nodes] opcodes of all programs, one after the other"""
    operand: Array
    """[nodes] operands of all programs"""
    spans: Array
    """[P, A + 1] int64: start of the program of each action, and end of the last"""
    limits: Array
    """[A, 2] least and largest value of each action"""
    counts: Array
    """[A] steps from limit to limit, if an action takes only some values; 0 if it takes any"""
    rates: Array = np.zeros(0)
    """[A] the most that each action may change in a step, from the action that the controller chose before;
    empty if all may jump. The window must have two rows"""


class Networks(NamedTuple):
    """Networks of equal sizes, one after the other, member by member; see `network.py`."""

    numbers: Array
    """[total · numbers of each] weights and biases, then the gains of a linear part if there is one"""
    total: int
    """number of networks"""
    sizes: Array
    """[layers + 1] number of inputs, and of outputs of each layer"""
    activations: Array
    """[layers] IDENTITY, RELU, TANH or SIGMOID"""


class Dynamics(NamedTuple):
    """The dynamics of a plant or a surrogate.

    States that are MOVED change as networks predict, or as their derivatives say. States that are DRIVEN
    follow the job's script. States that are DERIVED follow from the others, one after the other, by programs
    over the frame of the step.
    """

    kind: int
    """NETWORKS or DERIVATIVE"""
    ways: Array
    """[S] int64: MOVED, DRIVEN or DERIVED"""
    order: Array
    """[derived] int64: derived states in the order of their derivation"""
    networks: Networks
    """one network for each MOVED state of each member"""
    code: Array
    """[nodes] opcodes of all programs"""
    operand: Array
    """[nodes] operands of all programs"""
    spans: Array
    """[S + 1] start of the program of each state, which gives its derivative or derives it; may be empty"""
    substeps: int
    """steps of the integration in each step"""
    dt: float
    """seconds of a step"""
    bounds: Array
    """[S, 2] least and largest value of each state"""
    absorbing: bool
    """whether a failed lane keeps its state and repeats its reward for the rest of the horizon, and a lane
    that succeeded keeps its state and gets no more reward; if not, success means nothing"""
    on_failure: Array
    """[S] values that states take on failure; NaN if they stay"""


class LoweredReward(NamedTuple):
    """The reward of a step: a formula and a condition over the frame, or a network over its first rows."""

    kind: int
    """FORMULA, CLASSES or VALUE"""
    code: Array
    """[nodes] opcodes of the programs"""
    operand: Array
    """[nodes] operands of the programs"""
    spans: Array
    """[3] start of the programs of the reward and of the end of episodes (1: the step failed, -1: it
    succeeded, 0: neither), and end; the second is empty if no step ends an episode"""
    networks: Networks
    levels: Array
    """[classes] reward of each class"""
    failing: Array
    """[classes] bool: whether a step of each class fails"""


class Disturbances(NamedTuple):
    """What sensors and actuators do differently from the model, for each of N starts; nothing without rows.

    A plant gets, within its limits, `gain` · the action that was chosen `late` steps before + `offset`. The
    controller remembers the actions that it chose, and states as its sensors showed them.
    """

    late: Array
    """[N] int64: whole steps that an action comes late; before the first one comes the past"""
    gain: Array
    """[N, A] the share of an action that acts"""
    offset: Array
    """[N, A] what is added to an action"""
    noise: Array
    """[T, S, N] what sensors add to the states that controllers see, the starts last; may have no rows"""


CALM = Disturbances(np.zeros(0, np.int64), np.zeros((0, 0)), np.zeros((0, 0)), np.zeros((0, 0, 0)))
"""No disturbances."""


class Job(NamedTuple):
    """Everything that a rollout needs besides controllers and a system."""

    starts: Array
    """[N, S] first states; or [N, H (S + A)] with a past: states and actions of each lag"""
    setpoints: Array
    """[N or 1, T, S] or [T, S] setpoints of each step, for each start or for all; 0 for states without one"""
    discount: float
    history: int
    """rows H of the window"""
    script: Array = np.zeros((0, 0, 0))
    """[N or 1, T + 1, D] values of the D driven states at each step; if empty, they stay as they start"""
    noise: Array = np.zeros((0, 0, 0))
    """[N or 1, T, K] what is added to the K predicted states in each step; if empty, nothing is"""
    disturbances: Disturbances = CALM
    """what sensors and actuators do from each start"""
    steps: int = 0
    """T; 0 takes as many as there are setpoints. States derived after the last step read the setpoint after
    it, if there is one"""
    before: Array = np.zeros(0)
    """[A] the actions before the first step, where `starts` does not give them; if empty, 0"""


class Outcome(NamedTuple):
    """The results, which the engine fills in, a row per lane; trajectories have no rows if not asked for."""

    returns: Array
    """[lanes] Σ γᵏ r"""
    failed: Array
    """[lanes] bool: whether the lane failed"""
    states: Array
    """[lanes or 0, T + 1, S]"""
    actions: Array
    """[lanes or 0, T, A]"""
    rewards: Array
    """[lanes or 0, T]"""
    succeeded: Array
    """[lanes] bool: whether the lane ended by success"""


class Rows(NamedTuple):
    """The first row of everything in a thread's scratch memory, whose rows have LANES numbers."""

    features: int
    frame: int
    seen: int
    """with disturbances, the window as the controller knows it: states as seen, actions as chosen"""
    waiting: int
    """with disturbances, A rows of gains, A of offsets and one of delays, then a ring of chosen actions"""
    latest: int
    """the longest delay (a number of steps, not a place)"""
    action: int
    """A rows: the present actions in the frame"""
    reward: int
    fails: int
    """whether this step fails (1) or succeeds (-1)"""
    total: int
    """Σ γᵏ r so far"""
    failed: int
    """whether this or an earlier step failed (1) or succeeded (-1)"""
    held: int
    """the reward that lanes repeat after the end: of a failed lane the last, of one that succeeded 0"""
    loops: int
    """PID: 5 + `ring` rows for each loop (`policies.py`), of which the last hold the errors of the window"""
    ring: int
    """longest window (a number of rows, not a place)"""
    slopes: int
    """3 · S rows for the integration"""
    scores: int
    """outputs of a network"""
    hidden: int
    """two times the widest layer"""
    widest: int
    """outputs of the widest layer (a number of rows, not a place)"""
    stack: int
    """the remaining rows: the stack of programs"""
