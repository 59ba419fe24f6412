// The goal of a state: its present setpoint, and the region around it in which the reward is best.

export const aimOf = (state, setpoint) => setpoint?.[state.name] ?? state.setpoint ?? null;

// The server gives the region for the task's own setpoint; it moves with the setpoint.
export const goalOf = (state, setpoint) => {
  const moved = (aimOf(state, setpoint) ?? 0) - (state.setpoint ?? 0);
  return state.goal ? state.goal.map((edge) => edge + moved) : null;
};
