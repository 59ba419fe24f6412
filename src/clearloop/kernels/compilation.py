"""How kernels are compiled: what Python calls, what kernels call, and what is written as instructions."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import numba
from numba.core import compiler, config, event
from numba.core.cpu import CPUTargetOptions
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from clearloop.kernels import notice
from clearloop.kernels.cache import CACHE_FOLDER

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS: dict[str, Any] = {
    "nopython": True,
    "error_model": "numpy",
    # Arrays belong to the caller. To count references to them is an atomic instruction for each array in each
    # call, which cost a fifth of the engine's time.
    "_nrt": False,
}


def kernel(function: F) -> F:
    """What Python calls: compiled on first use, kept on disk, running without the GIL."""
    before = config.CACHE_DIR
    config.CACHE_DIR = CACHE_FOLDER  # read once, when the decorator makes the function's cache
    try:
        return numba.jit(cache=True, nogil=True, **_OPTIONS)(function)  # type: ignore[no-any-return]
    finally:
        config.CACHE_DIR = before


def part(function: F) -> F:
    """What kernels call: compiled into each of them."""
    return _part(function, _OPTIONS)  # type: ignore[no-any-return]


def inlined(function: F) -> F:
    """A part that leaves no call behind: called in one place, or so often that the call would show."""
    return _part(function, {**_OPTIONS, "forceinline": True})  # type: ignore[no-any-return]


def emitted(define: Any, prefer_literal: bool = False) -> Any:
    """What is written as instructions: `define` gives a signature for types, and what emits the code."""
    return intrinsic(prefer_literal=prefer_literal)(define)


def _part(function: Any, options: dict[str, Any]) -> Any:
    """A function that is compiled to LLVM's language, and no further.

    numba's own decorator would make machine code of each function, an entry for Python and a file in the
    cache. Parts need none of these, and without them the engine compiles in half the time.
    """
    compiled: dict[Any, Any] = {}

    def define(typing: Any, *kinds: Any) -> Any:
        if kinds not in compiled:
            compiled[kinds] = _compile(typing, function, kinds, options)
        result = compiled[kinds]

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            context.add_linking_libs([result.library])
            return context.call_internal(builder, result.fndesc, signature, arguments)

        return result.signature, generate

    first = inspect.Parameter("typing", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    define.__signature__ = inspect.Signature([first, *parameters])  # type: ignore[attr-defined]
    define.__name__, define.__doc__ = function.__name__, function.__doc__
    return emitted(define)


def _compile(typing: Any, function: Any, kinds: Any, options: dict[str, Any]) -> Any:
    flags = compiler.Flags()
    CPUTargetOptions.parse_as_flags(flags, options)
    flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    target = cpu_target.target_context
    library = target.codegen().create_library(function.__name__)
    return compiler.compile_internal(typing, target, library, function, kinds, None, flags, {})


class _Announcer(event.Listener):  # type: ignore[misc]
    """Tells that a kernel is being compiled, so that nobody wonders why the first run takes longer."""

    def on_start(self, what: Any) -> None:
        if what.data["dispatcher"].py_func.__module__.startswith("clearloop."):
            notice.tell()

    def on_end(self, what: Any) -> None:
        pass


event.register("numba:compile", _Announcer())
