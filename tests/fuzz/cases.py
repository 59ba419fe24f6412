"""The cases: which files are damaged how, and which command reads them."""

import random
from collections.abc import Callable
from typing import NamedTuple

from tests.fuzz import damage, words
from tests.fuzz.arguments import damaged_arguments
from tests.fuzz.seeds import NAMES, Files, Seeds

LANGUAGES = ("c", "st", "plcopen", "javascript", "python", "latex")
RUNNABLE = ("python", "st", "python", "st", "javascript", "c")


class Case(NamedTuple):
    """One command in a folder of its own."""

    family: str
    arguments: list[str]
    files: Files
    typed: bytes = b""  # on standard input
    written: tuple[str, int] | None = None  # also write log.csv as this kind of file, with this seed
    stopped: bool = True  # `learn` and `bench` stop before they train a model


def make_case(seed: int, number: int, seeds: Seeds) -> Case:
    """The case of a number: the same for the same seed, whatever was done before."""
    rng = random.Random(f"{seed}-{number}")  # noqa: S311 - nothing is secret
    families = list(FAMILIES)
    family = rng.choices(families, [FAMILIES[name][1] for name in families])[0]
    return FAMILIES[family][0](rng, seeds)


def _pair(rng: random.Random, seeds: Seeds) -> tuple[str, str]:
    """A controller, and the task that it fits."""
    name = rng.choice(list(seeds.controllers))
    return name, seeds.fitting[name]


def _with_json(rng: random.Random, arguments: list[str]) -> list[str]:
    return [*arguments, "--json"] if rng.random() < 0.4 else arguments


def _task_file(rng: random.Random, seeds: Seeds, name: str) -> bytes:
    document = damage.damaged_document(rng, seeds.tasks[name], NAMES[name])
    content = damage.to_toml(document)
    return damage.damaged_bytes(rng, content) if rng.random() < 0.1 else content


def _task(rng: random.Random, seeds: Seeds) -> Case:
    """A damaged task, with a good log and a good controller for it."""
    name = rng.choice(list(seeds.tasks))
    log = seeds.logs.get(name, [["level", "flow", "valve", "target"], *[["0", "1", "0.5", "1"]] * 30])
    files = {"it.toml": _task_file(rng, seeds, name), "log.csv": damage.to_csv(random.Random(0), log)}  # noqa: S311
    fitting = [one for one, task in seeds.fitting.items() if task == name] or ["published-gprl"]
    files["law.json"] = damage.to_json(seeds.controllers[rng.choice(fitting)])
    kind = rng.random()
    if kind < 0.3:
        return Case("task", _with_json(rng, ["tasks", "it.toml"]), files)
    if kind < 0.85:
        return Case("task", _use(rng, "law.json", "it.toml"), files)
    if kind < 0.9:
        return Case("task", ["data", "make", "it.toml", "--size", "50", "--out", "made.csv"], files)
    return Case("task", _read_log(rng, "log.csv", "it.toml"), files)


def _use(rng: random.Random, controller: str, task: str) -> list[str]:
    """A command that uses a controller for a task."""
    kind = rng.random()
    if kind < 0.3:
        return _with_json(rng, ["evaluate", controller, "--task", task, "--starts", "2"])
    if kind < 0.45:
        out = rng.choice(([], ["--out", "course.csv"], ["--out", "course.svg"] if kind < 0.32 else []))
        return ["simulate", controller, "--task", task, "--steps", "20", *out]
    if kind < 0.6:
        return _with_json(rng, ["show", controller, "--task", task])
    if kind < 0.9:
        single = ["--precision", "single"] if rng.random() < 0.2 else []
        return ["export", controller, "--task", task, "--to", rng.choice(LANGUAGES), *single]
    return _with_json(rng, ["verify", controller, "--task", task, "--to", rng.choice(RUNNABLE)])


def _controller(rng: random.Random, seeds: Seeds) -> Case:
    name, task = _pair(rng, seeds)
    document = damage.damaged_document(rng, seeds.controllers[name], NAMES[task])
    content = damage.to_json(document)
    if rng.random() < 0.1:
        content = damage.damaged_bytes(rng, content)
    return Case("controller", _use(rng, "it.json", task), {"it.json": content})


def _formula(rng: random.Random, seeds: Seeds) -> Case:
    """A formula from the grammar: as a controller, a reward, a condition, a derivative or a derived state."""
    names = NAMES["cartpole"]
    text = words.formula(rng, names, rng.choice((1, 2, 3, 4, 6)))
    if rng.random() < 0.1:
        text = words.damaged_text(rng, text)
    law = {"clearloop": 1, "kind": "equation", "outputs": {"force": text}}
    if rng.random() < 0.7:
        return Case("formula", _use(rng, "it.json", "cartpole"), {"it.json": damage.to_json(law)})
    task = {**seeds.tasks["cartpole"]}
    kind = rng.randrange(4)
    if kind == 0:
        task["reward"] = {"expression": text}
    elif kind == 1:
        task["reward"] = {"cases": [{"when": f"{text} > 0", "value": 1, "failure": True}], "otherwise": 0}
    elif kind == 2:
        task["states"] = {**task["states"], "more": {"formula": text}}
    else:
        task["plant"] = {**task["plant"], "derivative": {**task["plant"]["derivative"], "rho_dot": text}}
    law["outputs"] = {"force": "theta"}
    files = {"it.toml": damage.to_toml(task), "it.json": damage.to_json(law)}
    use = ["tasks", "it.toml"] if rng.random() < 0.4 else _use(rng, "it.json", "it.toml")
    return Case("formula", use, files)


def _read_log(rng: random.Random, log: str, task: str) -> list[str]:
    """A command that reads a log."""
    kind = rng.random()
    if kind < 0.4:
        return _with_json(rng, ["data", "check", log, "--task", task])
    if kind < 0.5:
        return _with_json(rng, ["data", "explain", log, "--task", task, "--out", "law.json"])
    if kind < 0.75:
        return ["data", "convert", log, "--task", task, "--out", rng.choice(("out.csv", "out.parquet"))]
    method = rng.choice(("gprl", "lqr", "pid", "cloning"))
    return ["learn", task, "--data", log, "--method", method, "--budget", "100", "--out", "run"]


def _log(rng: random.Random, seeds: Seeds) -> Case:
    task = rng.choice(list(seeds.logs))
    table = seeds.logs[task]
    kind, name, written = rng.random(), "log.csv", None
    if kind < 0.1:
        name = "log.xlsx"
        task, content = "tank", damage.damaged_archive(rng, seeds.workbook)
    elif kind < 0.15:
        name = rng.choice(("log.parquet", "log.xlsx", "log.csv", "log.npz", "log.txt", "log"))
        task, content = "tank", damage.damaged_bytes(rng, rng.choice((seeds.archive, seeds.workbook)))
    else:
        content = damage.to_csv(rng, damage.damaged_table(rng, table))
        if kind < 0.25:
            content = damage.damaged_bytes(rng, content)
        elif kind < 0.4:
            name = rng.choice(("log.parquet", "log.parquet", "log.xlsx"))
            written = (name, rng.randrange(2**31))
    files = {"log.csv" if written else name: content}
    if rng.random() < 0.25:
        return Case(
            "log", _init(rng, name, table[0]), files, rng.choice((b"", b"\n" * 30, b"y\nn\n" * 9)), written
        )
    if rng.random() < 0.03:
        files["law.json"] = damage.to_json(seeds.controllers["published-gprl"])
        return Case(
            "log",
            ["verify", "law.json", "--task", task, "--to", "python", "--data", name],
            files,
            written=written,
        )
    return Case("log", _read_log(rng, name, task), files, written=written, stopped=rng.random() < 0.98)


def _init(rng: random.Random, log: str, header: list[str]) -> list[str]:
    arguments = ["init", log]
    for option, form in (
        ("--action", "{0}"), ("--state", "{0}"), ("--setpoint", "{0}={1}"), ("--setpoint", "{0}=1.5"),
        ("--external", "{0}"), ("--velocity", "{0}:{2}"), ("--velocity", "{0}"), ("--integral", "{0}"),
        ("--goal", "{0} within {2}"), ("--goal", "{0} at {2} within 0.1"), ("--limits", "{0}={2},{2}"),
        ("--limits", "{0}=0,100"), ("--time", "{0}"), ("--episode", "{0}"), ("--dt", "{2}"),
    ):  # fmt: skip
        if rng.random() < 0.2 or option == "--action":
            column, other = (rng.choice((*header, rng.choice(words.TEXTS))) for _ in range(2))
            number = rng.choice(("1", "0.05", str(rng.choice(words.NUMBERS))))
            arguments += [option, form.format(column, other, number).replace("\0", "")]
    return arguments


def _run(rng: random.Random, seeds: Seeds) -> Case:
    """A damaged run directory."""
    finished = rng.random() < 0.97  # a search that is continued takes long
    files = dict(seeds.finished if finished else seeds.interrupted)
    for _ in range(rng.choice((1, 1, 2))):
        name = rng.choice(list(files))
        files[name] = _damaged_file(rng, name, files[name])
        if rng.random() < 0.05:
            del files[name]
    files = {f"run/{name}": content for name, content in files.items()}
    kind = rng.random()
    if not finished:
        return Case("run", ["learn", "cartpole", "--out", "run", "--resume"], files)
    if kind < 0.5:
        return Case(
            "run", _with_json(rng, ["show", *(["run"] if kind < 0.4 else ["003", "--run", "run"])]), files
        )
    if kind < 0.51:
        return Case("run", ["report", "run"], files)
    if kind < 0.52:
        return Case("run", ["card", "003", "--run", "run"], files)
    if kind < 0.7:
        return Case(
            "run",
            _with_json(rng, ["evaluate", "003", "--run", "run", "--on", "model", "--starts", "2"]),
            files,
        )
    if kind < 0.75:
        on = rng.choice(("model", "plant"))
        return Case("run", ["simulate", "003", "--run", "run", "--on", on, "--steps", "20"], files)
    if kind < 0.85:
        return Case("run", ["export", "003", "--run", "run", "--to", rng.choice(LANGUAGES)], files)
    if kind < 0.88:
        return Case("run", ["verify", "003", "--run", "run", "--to", "python"], files)
    if kind < 0.89:
        return Case("run", ["refine", "003", "--run", "run"], files)
    if kind < 0.91:
        return Case("run", ["learn", "cartpole", "--out", "run", "--resume"], files)
    return Case("run", ["show", "run"], files)


def _damaged_file(rng: random.Random, name: str, content: bytes) -> bytes:
    import json

    if rng.random() < 0.15:
        return damage.damaged_bytes(rng, content)
    if name.endswith(".json"):
        try:
            document = json.loads(content)
        except ValueError:  # it has been damaged before
            return damage.damaged_bytes(rng, content)
        return damage.to_json(damage.damaged_document(rng, document, NAMES["cartpole"]))
    if name.endswith(".csv"):
        changed = damage.damaged_table(rng, damage.to_table(content))
        return damage.to_csv(rng, changed)
    return damage.damaged_bytes(rng, content)


def _arguments(rng: random.Random, seeds: Seeds) -> Case:
    """A command with good files and odd arguments."""
    name, task = _pair(rng, seeds)
    files = {f"run/{name}": content for name, content in seeds.finished.items()}
    files["law.json"] = damage.to_json(seeds.controllers[name])
    files["log.csv"] = damage.to_csv(random.Random(0), seeds.logs[task])  # noqa: S311
    return Case("arguments", damaged_arguments(rng, task), files)


FAMILIES: dict[str, tuple[Callable[[random.Random, Seeds], Case], float]] = {
    "task": (_task, 2.5),
    "controller": (_controller, 2.5),
    "formula": (_formula, 1.5),
    "log": (_log, 3.0),
    "run": (_run, 1.5),
    "arguments": (_arguments, 1.5),
}
