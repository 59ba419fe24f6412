"""A seeded fuzzer of the command line: `python -m tests.fuzz --cases 10000 --seed 0`.

Every case is made from two numbers, the seed and its own number, so that one case can be made again alone. A
case is a folder of files, some of them damaged, and one command that reads them. The command must end with an
exit code that is documented, without a traceback or a Python warning, in one line if the input is bad, and
within 20 s of processor time and 2 GiB of memory. Nearly all searches are stopped before a model is learned,
or after their first round; the few others have 60 s.
"""
