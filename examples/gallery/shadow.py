"""Shadow mode: a new controller beside a plant that the old one drives. It reads, and writes nothing."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import clearloop as cl
from clearloop.diagnosis.robustness import Region
from clearloop.pages.shadow_report import draw_actions, verdicts
from clearloop.runs.feeds import Sample, csv_feed
from clearloop.runs.shadow import Shadow


def main(figure: str = "shadow.png") -> None:
    task = cl.Task.load("tank")
    controller = cl.load("examples/plants/tank.json")

    # The log from which the new controller was learned tells which states are known.
    log = cl.make_batch(task, size=3_000, rng=np.random.default_rng(0))
    region = Region(task, log, rng=np.random.default_rng(0))

    with TemporaryDirectory() as folder:
        # What the plant's own controller does arrives as a CSV file; a live one may still be growing.
        live = cl.make_batch(task, size=300, rng=np.random.default_rng(1)).to_frame()
        file = Path(folder) / "live.csv"
        live.with_columns(time=live["time"] + 750.0 * live["episode"]).drop("episode").write_csv(file)
        with Shadow(controller, task, Path(folder) / "beside", region=region) as beside:
            for thing in csv_feed(str(file), task, follow=False):
                if isinstance(thing, Sample):
                    beside.take(thing)
            for good, sentence in verdicts(beside):
                print("+" if good else "-", sentence)
            draw_actions(beside).savefig(figure)


if __name__ == "__main__":
    main(*sys.argv[1:])
