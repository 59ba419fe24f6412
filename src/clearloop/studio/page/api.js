// Requests to the studio's server. If it refuses one, the Error has the server's one line.

const ask = async (address, options = {}) => {
  let response;
  try {
    response = await fetch(address, { cache: "no-store", ...options });
  } catch {
    throw new Error("The studio does not answer. Is `clearloop studio` still running?");
  }
  const answer = await response.json().catch(() => null);
  if (!response.ok) throw new Error(answer?.error ?? `The studio answered ${response.status} to ${address}`);
  return answer;
};

const json = (value) => ({
  method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(value),
});

export const state = () => ask("/api/state");
export const runs = () => ask("/api/runs");
export const batches = () => ask("/api/batches");
export const controllers = (task) => ask(`/api/controllers?${new URLSearchParams({ task })}`);
export const learn = (wish) => ask("/api/learn", json(wish));
export const progress = (run) => ask(`/api/runs/${encodeURIComponent(run)}/progress`);
export const stop = (run) => ask(`/api/runs/${encodeURIComponent(run)}/stop`, json({}));
export const upload = (task, name, file) =>
  ask(`/api/batches?${new URLSearchParams({ task, name })}`, {
    method: "POST", headers: { "content-type": "text/csv" }, body: file,
  });
