"""The program `clearloop` is assembled here from its commands; errors become one line and an exit code."""

import io
import os
import sys
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Annotated, Any, NoReturn, cast

import typer
from typer.main import get_command

import clearloop
from clearloop.cli.bench import bench
from clearloop.cli.data import data
from clearloop.cli.doctor import doctor
from clearloop.cli.evaluate import evaluate_command, simulate_command
from clearloop.cli.export import export, verify
from clearloop.cli.field import pack, shadow
from clearloop.cli.init import init, tasks
from clearloop.cli.learn import demo, learn_command
from clearloop.cli.model import model
from clearloop.cli.options import Commands
from clearloop.cli.refine import refine_command
from clearloop.cli.report import card, report
from clearloop.cli.show import show
from clearloop.cli.studio import studio
from clearloop.cli.terminal import InterruptedRunError, echo, visible
from clearloop.cli.tune import tune_command
from clearloop.errors import ClearloopError, ClearloopWarning
from clearloop.kernels import when_compiling

# The bases of BadParameter are UsageError and ClickException, of the click that typer uses or contains.
ClickException = cast(type[typer.BadParameter], typer.BadParameter.__mro__[2])

INTERRUPTED = 130  # exit code
_LONGEST = 1500  # characters of an error; names in files may be much longer
_usual_warning = warnings.formatwarning

app = Commands(
    help="Turn the log of a plant into controllers that a person can read, check and sign.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog="Start with: clearloop demo",
)


def _version(wanted: bool) -> None:
    if wanted:
        echo(f"clearloop {clearloop.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


app.command()(demo)
app.command()(tasks)
app.command()(init)
app.add_typer(data, name="data")
app.command()(model)
app.command("learn")(learn_command)
app.command()(bench)
app.command()(show)
app.command()(report)
app.command()(card)
app.command("refine")(refine_command)
app.command("tune")(tune_command)
app.command("evaluate")(evaluate_command)
app.command("simulate")(simulate_command)
app.command()(export)
app.command()(verify)
app.command()(pack)
app.command()(shadow)
app.command()(studio)
app.command()(doctor)


def _program() -> Any:
    # Without the change, typer's help writes `<bool>` after a flag, as if the flag took a value.
    program = get_command(app)
    _leave_out_types_of_flags(program)
    return program


def _leave_out_types_of_flags(command: Any) -> None:
    for option in command.get_params(typer.Context(command)):
        if getattr(option, "is_flag", False):
            option.metavar = ""
    for inner in getattr(command, "commands", {}).values():
        _leave_out_types_of_flags(inner)


@cache  # only once, although the engine is compiled in two precisions
def _announce() -> None:
    echo("Compiling the engine for this machine; this takes some seconds and happens only once.", err=True)


def main() -> NoReturn:
    """Run the command line, and exit. Every error is one line on standard error."""
    _replace_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")  # pipes on Windows have no θ otherwise
    when_compiling(_announce)
    warnings.formatwarning = _warning
    farewell = "interrupted"
    try:
        code = _program()(prog_name="clearloop", standalone_mode=False)
        sys.stdout.flush()
    except InterruptedRunError as stop:
        code, farewell = INTERRUPTED, str(stop)
    except ClearloopError as error:
        _complain(str(error))
    except ClickException as error:
        _explain_usage(error)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except BrokenPipeError:  # nobody reads our output any longer
        _give_up_output()
        sys.exit(1)
    except OSError as error:
        _give_up_output()
        _complain(f"{error.filename or 'output'}: {error.strerror or error}")
    except MemoryError:
        _complain("not enough memory for this")
    if code == INTERRUPTED:  # also what typer returns after Ctrl-C
        echo(farewell, err=True)
        with suppress(OSError):
            sys.stdout.flush()
        os._exit(INTERRUPTED)  # sys.exit would wait for threads that are at work in the engine
    sys.exit(code if isinstance(code, int) else 0)


def _replace_closed_streams() -> None:
    # Python has None for a stream that the caller has closed, as in `clearloop show RUN >&-`.
    sys.stdin = sys.stdin or io.StringIO()
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - until the end


def _warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    # Our warnings are one line for a person; others stay as Python writes them.
    if issubclass(category, ClearloopWarning):
        return f"warning: {_one_line(str(message))}\n"
    return _usual_warning(message, category, filename, lineno, line)


def _explain_usage(error: typer.BadParameter) -> NoReturn:
    message = error.format_message()
    if not message:  # a command without arguments: its help has been printed
        sys.exit(error.exit_code)
    end = "" if message.endswith((".", "?")) else "."
    _complain(f"{message}{end} See: {error.ctx.command_path if error.ctx else 'clearloop'} --help")


def _complain(message: str) -> NoReturn:
    echo(f"error: {_one_line(message)}", err=True)
    sys.exit(2)


def _one_line(message: str) -> str:
    # The end of a long message is kept, because it says what to do.
    line = visible(" ".join(message.split()))
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 500]} … {line[-500:]}"


def _give_up_output() -> None:
    # Otherwise Python tries to write the rest of the output again when it exits.
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
