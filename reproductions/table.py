"""The paper's table on the cart-pole: `clearloop bench`, ten experiments of each method, on each track.

`python -m reproductions.table [OPTION]…`, with further options of the bench. It goes on where it was stopped.
"""

import subprocess
import sys

from clearloop.surrogate import TRACKS


def main() -> None:
    for track in TRACKS:
        bench = (
            "bench",
            "cartpole",
            "--track",
            track,
            "--seeds",
            "10",
            "--out",
            f"runs/table-{track}",
            "--resume",
        )
        subprocess.run([sys.executable, "-m", "clearloop", *bench, *sys.argv[1:]], check=True)  # noqa: S603


if __name__ == "__main__":
    main()
