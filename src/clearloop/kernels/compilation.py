"""Decorators compile functions that Python calls, functions that kernels call, and emitted instructions."""

import hashlib
import inspect
import os
import stat
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import cgutils, compiler, config, event
from numba.core.cpu import CPUTargetOptions
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from clearloop.kernels import tell_listeners

# numba's own cache notices a change in a kernel's file, but not in a file that the kernel calls into. So the
# cache has a folder of its own for every state of this package's sources.


def _root() -> Path:
    if config.CACHE_DIR:
        return Path(config.CACHE_DIR)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData/Local")) / "clearloop"
    if sys.platform == "darwin":
        return Path.home() / "Library/Caches/clearloop"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "clearloop"


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _temporary() -> Path:
    """Return a folder that only this user can write to, because what is found there is run."""
    if not hasattr(os, "getuid"):
        return Path(tempfile.gettempdir()) / "clearloop"  # on Windows every user has a temporary folder
    folder = Path(tempfile.gettempdir()) / f"clearloop-{os.getuid()}"
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        about = folder.lstat()
        if stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid() and not about.st_mode & 0o022:
            return folder
    return Path(tempfile.mkdtemp(prefix="clearloop-"))


def _folder() -> str:
    """Return a folder named after the sources of everything that a kernel may contain."""
    package = Path(__file__).parent
    digest = hashlib.sha256()
    for source in sorted([*package.glob("*.py"), *(package.parent / "expression").glob("*.py")]):
        digest.update(source.read_bytes())
    name = f"kernels-{digest.hexdigest()[:16]}"
    root = _root()
    if not _writable(root):
        root = _temporary()
    return str(root / name)


CACHE_FOLDER = _folder()


F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS: dict[str, Any] = {
    "nopython": True,
    "error_model": "numpy",
    # Arrays belong to the caller. Counting references to them would be an atomic instruction for each array
    # in each call, which cost a fifth of the engine's time.
    "_nrt": False,
}


def kernel(function: F) -> F:
    """Compile a function that Python calls: on first use, cached on disk, and running without the GIL."""
    before = config.CACHE_DIR
    config.CACHE_DIR = CACHE_FOLDER  # read once, when the decorator makes the function's cache
    try:
        return numba.jit(cache=True, nogil=True, **_OPTIONS)(function)  # type: ignore[no-any-return]
    finally:
        config.CACHE_DIR = before


def part(function: F) -> F:
    """Compile a function that kernels call."""
    return _part(function, inline=False)  # type: ignore[no-any-return]


def inlined(function: F) -> F:
    """Compile a function that kernels call, without a call: it is used once, or in an inner loop."""
    return _part(function, inline=True)  # type: ignore[no-any-return]


def emitted(define: Any, prefer_literal: bool = False) -> Any:
    """Make a function of instructions: `define` returns a signature for types, and what emits the code."""
    return intrinsic(prefer_literal=prefer_literal)(define)


def _part(function: Any, inline: bool) -> Any:
    def define(typing: Any, *kinds: Any) -> Any:
        result = _compile(typing, function, kinds, None)

        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return _emit_call(context, builder, result, arguments, inline)

        return result.signature, generate

    first = inspect.Parameter("typing", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    define.__signature__ = inspect.Signature([first, *parameters])  # type: ignore[attr-defined]
    define.__name__, define.__doc__ = function.__name__, function.__doc__
    return emitted(define)


def emit_inlined(context: Any, builder: Any, function: Any, signature: Any, arguments: Any) -> Any:
    """Emit the instructions of a Python function, as part of something else that is emitted."""
    result = _compile(context.typing_context, function, signature.args, signature.return_type)
    return _emit_call(context, builder, result, arguments, inline=True)


@cache
def _compile(typing: Any, function: Any, kinds: Any, returns: Any) -> Any:
    """Compile a function for these types of arguments to LLVM's intermediate language.

    numba's own decorator would also make machine code of each function, an entry for Python and a file in the
    cache. Only kernels need these, and without them the engine compiles in a quarter of the time.
    """
    flags = compiler.Flags()
    CPUTargetOptions.parse_as_flags(flags, _OPTIONS)
    flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    target = cpu_target.target_context
    library = target.codegen().create_library(function.__name__)
    result = compiler.compile_internal(typing, target, library, function, kinds, returns, flags, {})
    library._finalized = True  # ready to be linked
    return result


def _emit_call(context: Any, builder: Any, result: Any, arguments: Any, inline: bool) -> Any:
    """Emit a call. LLVM does not decide what to inline, as its choice took registers from the inner loop."""
    context.add_linking_libs([result.library, *result.library._linking_libraries])
    callee = context.declare_function(builder.module, result.fndesc)
    types, attributes = result.signature, ("alwaysinline" if inline else "noinline",)
    status, value = context.call_conv.call_function(
        builder, callee, types.return_type, types.args, arguments, attrs=attributes
    )
    with cgutils.if_unlikely(builder, status.is_error):
        context.call_conv.return_status_propagate(builder, status)
    return value


class _Announcer(event.Listener):  # type: ignore[misc]
    """Tells that a kernel is being compiled, so that users know why the first run takes longer."""

    def on_start(self, what: Any) -> None:
        if what.data["dispatcher"].py_func.__module__.startswith("clearloop."):
            tell_listeners()

    def on_end(self, what: Any) -> None:
        pass


event.register("numba:compile", _Announcer())
