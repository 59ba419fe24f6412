"""The paper's table on the cart-pole: `clearloop bench`, ten experiments of each method, on both tracks.

`python -m reproductions.table [OPTION]…`, with further options of the bench. It goes on where it was stopped.
"""

import subprocess
import sys

COMMAND = ("bench", "cartpole", "--track", "both", "--seeds", "10", "--out", "runs/table", "--resume")


def main() -> None:
    subprocess.run([sys.executable, "-m", "clearloop", *COMMAND, *sys.argv[1:]], check=True)  # noqa: S603


if __name__ == "__main__":
    main()
