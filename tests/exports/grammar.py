"""`python -m tests.exports.grammar 1000 [KIND]…`: does another parser take so many random controllers?

Of each readable kind; functions that come along are the same few in all of them, and are parsed in
`test_blark.py`. It takes a second for each text.
"""

import sys

from clearloop.exports.spans import DOUBLE
from clearloop.exports.structured_text.printing import pous
from clearloop.exports.structured_text.units import pou_text
from tests.exports.test_blark import accepted
from tests.exports.test_random import cases
from tests.exports.test_structured_text_random import READABLE


def main(count: int, kinds: tuple[str, ...]) -> None:
    for kind in kinds:
        texts = [
            pou_text(pous(case.controller, "test", DOUBLE)[-1]) for case in cases(kind, DOUBLE.name, count)
        ]
        refused = [text for text in texts if not accepted(text)]
        print(f"{kind}: {len(texts) - len(refused):,} of {len(texts):,} texts are accepted", flush=True)
        for text in refused:
            print(text)


if __name__ == "__main__":
    main(int(sys.argv[1]), tuple(sys.argv[2:] or READABLE))
