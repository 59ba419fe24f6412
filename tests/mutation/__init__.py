"""A mutation tester: `python -m tests.mutation --mutants 400 --seed 0`.

A mutant is the package with one small change, such as `<` for `<=`. Tests that pass with it do not test what
was changed. Every mutant runs in a process of its own, forked from one that has imported the
package and collected its tests; only tests that reach the changed line run, the shortest first.
"""
