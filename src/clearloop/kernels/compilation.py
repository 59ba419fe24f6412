"""One decorator for every kernel, and where compiled code is kept.

numba's own cache notices a change in a kernel's file, but not in a file that the kernel calls into, so the
cache has a folder of its own for every state of this package's sources.
"""

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import config

# With `nnan` and `ninf` the guards that make the formula language total would be optimised away.
FASTMATH = {"contract", "reassoc", "nsz"}


def _cache_root() -> Path:
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


def _cache_folder() -> str:
    """A folder named after the sources of everything that a kernel may contain."""
    package = Path(__file__).parent
    digest = hashlib.sha256()
    for source in sorted([*package.glob("*.py"), *(package.parent / "expression").glob("*.py")]):
        digest.update(source.read_bytes())
    name = f"kernels-{digest.hexdigest()[:16]}"
    root = _cache_root()
    if not _writable(root):
        user = os.getuid() if hasattr(os, "getuid") else 0
        root = Path(tempfile.gettempdir()) / f"clearloop-{user}"
    return str(root / name)


F = TypeVar("F", bound=Callable[..., Any])

CACHE_FOLDER = _cache_folder()


def kernel(function: F) -> F:
    """Compile on first use, release the GIL, keep the result on disk."""
    return _compiled(function, forceinline=False)


def inlined(function: F) -> F:
    """A kernel that becomes part of its callers: for what is called so often that the call would show."""
    return _compiled(function, forceinline=True)


def _compiled(function: F, forceinline: bool) -> F:
    before = config.CACHE_DIR
    config.CACHE_DIR = CACHE_FOLDER  # read once, when the decorator makes the function's cache
    try:
        decorate = numba.njit(
            cache=True, nogil=True, error_model="numpy", fastmath=FASTMATH, forceinline=forceinline
        )
        return decorate(function)  # type: ignore[no-any-return]
    finally:
        config.CACHE_DIR = before
