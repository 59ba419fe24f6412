"""`python -m clearloop` is the same as `clearloop`."""

from clearloop.cli import main

main()
