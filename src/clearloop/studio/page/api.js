// Requests to the studio's server. If it refuses one, the Error has the server's one line.

const SILENT = "The studio does not answer. Is `clearloop studio` still running?";

const ask = async (address, options = {}) => {
  let response;
  try {
    response = await fetch(address, { cache: "no-store", ...options });
  } catch {
    throw new Error(SILENT);
  }
  const answer = await response.json().catch(() => null);
  if (!response.ok) throw new Error(answer?.error ?? `The studio answered ${response.status} to ${address}`);
  return answer;
};

// Asks for a file and lets the browser save it; returns its name and its SHA-256.
const save = async (address, wish) => {
  const response = await fetch(address, { cache: "no-store", ...json(wish) }).catch(() => {
    throw new Error(SILENT);
  });
  if (!response.ok) throw new Error((await response.json().catch(() => null))?.error ?? `The studio answered ${response.status}`);
  const name = /filename="([^"]+)"/.exec(response.headers.get("content-disposition") ?? "")?.[1] ?? "download";
  const url = URL.createObjectURL(await response.blob());
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
  return { name, digest: response.headers.get("x-sha256") };
};

const json = (value) => ({
  method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(value),
});

export const state = () => ask("/api/state");
export const runs = () => ask("/api/runs");
export const batches = () => ask("/api/batches");
export const controllers = (task) => ask(`/api/controllers?${new URLSearchParams({ task })}`);
export const margins = (task, controller) => ask(`/api/margins?${new URLSearchParams({ task, controller })}`);
export const learn = (wish) => ask("/api/learn", json(wish));
export const progress = (run) => ask(`/api/runs/${encodeURIComponent(run)}/progress`);
export const stop = (run) => ask(`/api/runs/${encodeURIComponent(run)}/stop`, json({}));
export const upload = (task, name, file) =>
  ask(`/api/batches?${new URLSearchParams({ task, name })}`, {
    method: "POST", headers: { "content-type": "text/csv" }, body: file,
  });
export const comparison = (task, a, b) => ask(`/api/comparison?${new URLSearchParams({ task, a, b })}`);
export const logs = () => ask("/api/logs");
export const openLog = (name) => ask(`/api/logs/${encodeURIComponent(name)}`);
export const uploadLog = (name, file) => ask(`/api/logs?${new URLSearchParams({ name })}`, { method: "POST", body: file });
export const draft = (wish) => ask("/api/drafts", json(wish));
export const check = (log, text) => ask("/api/checks", json({ log, text }));
export const keepTask = (log, text) => ask("/api/tasks", json({ log, text }));
export const exported = (task, controller, target) => save("/api/export", { task, controller, target });
export const packed = (task, controller) => save("/api/pack", { task, controller });
