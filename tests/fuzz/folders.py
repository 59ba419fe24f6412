"""Cases with a damaged folder: a run, a bench, or what a controller beside a plant has written down."""

import json
import random

from tests.fuzz import damage
from tests.fuzz.case import Case, with_json
from tests.fuzz.seeds import NAMES, Files, Seeds

LANGUAGES = ("c", "st", "plcopen", "javascript", "python", "latex")


def damaged_run(rng: random.Random, seeds: Seeds) -> Case:
    """A damaged run directory."""
    finished = rng.random() < 0.97  # a search that is continued takes long
    files = _damaged(rng, "run", seeds.finished if finished else seeds.interrupted)
    kind = rng.random()
    if not finished or 0.89 <= kind < 0.91:
        return Case("run", ["learn", "cartpole", "--out", "run", "--resume"], files)
    if kind < 0.5:
        shown = ["run"] if kind < 0.4 else ["003", "--run", "run"]
        return Case("run", with_json(rng, ["show", *shown]), files)
    if kind < 0.51:
        return Case("run", ["report", "run"], files)
    if kind < 0.52:
        return Case("run", ["card", "003", "--run", "run"], files)
    if kind < 0.7:
        score = ["evaluate", "003", "--run", "run", "--on", "model", "--starts", "2"]
        return Case("run", with_json(rng, score), files)
    if kind < 0.75:
        on = rng.choice(("model", "plant"))
        return Case("run", ["simulate", "003", "--run", "run", "--on", on, "--steps", "20"], files)
    if kind < 0.85:
        return Case("run", ["export", "003", "--run", "run", "--to", rng.choice(LANGUAGES)], files)
    if kind < 0.88:
        return Case("run", ["verify", "003", "--run", "run", "--to", "python"], files)
    if kind < 0.89:
        return Case("run", ["refine", "003", "--run", "run"], files)
    return Case("run", ["show", "run"], files)


def damaged_bench(rng: random.Random, seeds: Seeds) -> Case:
    """A damaged bench, whose experiments are all done: only its tables are made."""
    files = _damaged(rng, "bench", seeds.bench)
    if rng.random() < 0.3:
        return Case("bench", with_json(rng, ["show", "bench"]), files)
    files["bench/run.json"] = files.get("bench/run.json", b"").replace(b'"finished"', b'"interrupted"')
    return Case("bench", with_json(rng, ["bench", "cartpole", "--out", "bench", "--resume"]), files)


def damaged_shadow(rng: random.Random, seeds: Seeds) -> Case:
    """A damaged folder of a shadow, which goes on with more samples."""
    files = _damaged(rng, "beside", seeds.shadow)
    table = [row for row in seeds.logs["cartpole"][:60] if row]
    files["more.csv"] = damage.to_csv(rng, damage.damaged_table(rng, table) if rng.random() < 0.3 else table)
    files["law.json"] = damage.to_json(seeds.controllers["published-gprl"])
    command = ["shadow", "law.json", "--task", "cartpole", "--csv", "more.csv", "--once", "--out", "beside"]
    return Case("shadow", with_json(rng, command), files)


def _damaged(rng: random.Random, folder: str, good: Files) -> Files:
    """The files of a folder, one or two of which are damaged, gone, or something else than files."""
    files = dict(good)
    for _ in range(rng.choice((1, 1, 2))):
        name = rng.choice(list(files))
        kind = rng.random()
        if kind < 0.05:
            del files[name]
        elif kind < 0.1:
            files[name] = rng.choice(damage.NO_FILES)
        else:
            files[name] = _damaged_file(rng, name, files[name])
    return {f"{folder}/{name}": content for name, content in files.items()}


def _damaged_file(rng: random.Random, name: str, content: bytes) -> bytes:
    if rng.random() < 0.15:
        return damage.damaged_bytes(rng, content)
    if name.endswith(".json"):
        try:
            document = json.loads(content)
        except ValueError:  # it has been damaged before
            return damage.damaged_bytes(rng, content)
        return damage.to_json(damage.damaged_document(rng, document, NAMES["cartpole"]))
    if name.endswith(".csv"):
        try:
            table = damage.to_table(content)
        except ValueError:
            return damage.damaged_bytes(rng, content)
        return damage.to_csv(rng, damage.damaged_table(rng, table))
    return damage.damaged_bytes(rng, content)
