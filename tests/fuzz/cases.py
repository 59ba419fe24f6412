"""The cases: which files are damaged how, and which command reads them."""

import random
from collections.abc import Callable

from tests.fuzz import damage, words
from tests.fuzz.arguments import damaged_arguments
from tests.fuzz.case import Case, with_json
from tests.fuzz.folders import LANGUAGES, damaged_bench, damaged_run, damaged_shadow
from tests.fuzz.seeds import NAMES, Seeds

RUNNABLE = ("python", "st", "python", "st", "javascript", "c")


def make_case(seed: int, number: int, seeds: Seeds) -> Case:
    """The case of a number: the same for the same seed, whatever was done before."""
    rng = random.Random(f"{seed}-{number}")  # noqa: S311 - nothing is secret
    families = list(FAMILIES)
    family = rng.choices(families, [FAMILIES[name][1] for name in families])[0]
    case = FAMILIES[family][0](rng, seeds)
    if rng.random() < 0.005 and not case.written:  # in the place of any file may be something that is none
        case.files[rng.choice(list(case.files))] = rng.choice(damage.NO_FILES)
    return case


def _pair(rng: random.Random, seeds: Seeds) -> tuple[str, str]:
    """A controller, and the task that it fits."""
    name = rng.choice(list(seeds.controllers))
    return name, seeds.fitting[name]


def _fitting(rng: random.Random, seeds: Seeds, task: str) -> str:
    """A controller that fits a task, if there is one."""
    return rng.choice([one for one, its in seeds.fitting.items() if its == task] or ["published-gprl"])


def _task_file(rng: random.Random, seeds: Seeds, name: str) -> bytes:
    document = damage.damaged_document(rng, seeds.tasks[name], NAMES[name])
    content = damage.to_toml(document)
    return damage.damaged_bytes(rng, content) if rng.random() < 0.1 else content


def _task(rng: random.Random, seeds: Seeds) -> Case:
    """A damaged task, with a good log and a good controller for it."""
    name = rng.choice(list(seeds.tasks))
    log = seeds.logs.get(name, [["level", "flow", "valve", "target"], *[["0", "1", "0.5", "1"]] * 30])
    files = {"it.toml": _task_file(rng, seeds, name), "log.csv": damage.to_csv(random.Random(0), log)}  # noqa: S311
    files["law.json"] = damage.to_json(seeds.controllers[_fitting(rng, seeds, name)])
    kind = rng.random()
    if kind < 0.3:
        return Case("task", with_json(rng, ["tasks", "it.toml"]), files)
    if kind < 0.85:
        return Case("task", _use(rng, "law.json", "it.toml"), files)
    if kind < 0.9:
        return Case("task", ["data", "make", "it.toml", "--size", "50", "--out", "made.csv"], files)
    return Case("task", _read_log(rng, "log.csv", "it.toml"), files)


def _use(rng: random.Random, controller: str, task: str) -> list[str]:
    """A command that uses a controller for a task."""
    kind = rng.random()
    if kind < 0.3:
        return with_json(rng, ["evaluate", controller, "--task", task, "--starts", "2"])
    if kind < 0.45:
        out = rng.choice(([], ["--out", "course.csv"], ["--out", "course.svg"] if kind < 0.32 else []))
        return ["simulate", controller, "--task", task, "--steps", "20", *out]
    if kind < 0.6:
        return with_json(rng, ["show", controller, "--task", task])
    if kind < 0.9:
        single = ["--precision", "single"] if rng.random() < 0.2 else []
        return ["export", controller, "--task", task, "--to", rng.choice(LANGUAGES), *single]
    return with_json(rng, ["verify", controller, "--task", task, "--to", rng.choice(RUNNABLE)])


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
        return with_json(rng, ["data", "check", log, "--task", task])
    if kind < 0.5:
        return with_json(rng, ["data", "explain", log, "--task", task, "--out", "law.json"])
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
    if rng.random() < 0.1:
        files["law.json"] = damage.to_json(seeds.controllers[_fitting(rng, seeds, task)])
        shadow = ["shadow", "law.json", "--task", task, "--csv", name, "--once", "--out", "beside"]
        return Case("log", with_json(rng, shadow), files, written=written)
    if rng.random() < 0.02:
        return Case("log", with_json(rng, ["tune", "--task", task, "--data", name]), files, written=written)
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
    "run": (damaged_run, 1.5),
    "bench": (damaged_bench, 0.3),
    "shadow": (damaged_shadow, 0.3),
    "arguments": (_arguments, 1.5),
}
