"""`python -m clearloop` is the command `clearloop`."""

from clearloop.cli import main

if __name__ == "__main__":
    main()
