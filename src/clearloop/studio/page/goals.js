// Where a state should be: its setpoint now, and the region about it in which nothing is paid.

export const aimOf = (state, setpoint) => setpoint?.[state.name] ?? state.setpoint ?? null;

// The server gives the region for the task's own setpoint; it moves with the setpoint.
export const goalOf = (state, setpoint) => {
  const moved = (aimOf(state, setpoint) ?? 0) - (state.setpoint ?? 0);
  return state.goal ? state.goal.map((edge) => edge + moved) : null;
};
