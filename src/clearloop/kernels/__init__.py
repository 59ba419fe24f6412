"""The compiled work: arrays and named tuples in, preallocated arrays out. The only place that uses numba.

Nothing here knows of files, tasks or people. Importing it compiles nothing; the first call of a kernel
does, once per machine, and leaves the result in a cache on disk (`compilation.py`).
"""
