"""The program: its commands, and what becomes of errors."""

import os
import sys
from typing import Annotated, NoReturn

import typer

import clearloop
from clearloop.cli.data import data
from clearloop.cli.demo import demo
from clearloop.cli.evaluate import evaluate
from clearloop.cli.model import model
from clearloop.cli.show import show
from clearloop.cli.simulate import simulate
from clearloop.cli.tasks import tasks
from clearloop.errors import ClearloopError

# Some releases of typer bring a click of their own; these are the classes of whichever it uses.
UsageError = typer.BadParameter.__bases__[0]
ClickException = UsageError.__bases__[0]

app = typer.Typer(
    help="From the log of a plant to controllers that a person can read, check and sign.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog="Start with: clearloop demo",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"clearloop {clearloop.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[  # noqa: ARG001
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


app.command()(demo)
app.command()(tasks)
app.add_typer(data, name="data")
app.command()(model)
app.command()(evaluate)
app.command()(show)
app.command()(simulate)


def main() -> NoReturn:
    try:
        code = app(standalone_mode=False)
    except ClearloopError as error:
        _complain(str(error))
    except ClickException as error:
        context = getattr(error, "ctx", None)
        hint = f". See: {context.command_path} --help" if context else ""
        _complain(error.format_message().rstrip(".") + hint)  # type: ignore[attr-defined]
    except (KeyboardInterrupt, typer.Abort):
        typer.echo("interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        _complain(f"{error.filename or 'file system'}: {error.strerror or error}")
    except MemoryError:
        _complain("not enough memory for this")
    sys.exit(code if isinstance(code, int) else 0)


def _complain(message: str) -> NoReturn:
    typer.echo("error: " + " ".join(message.split()), err=True)
    sys.exit(2)
