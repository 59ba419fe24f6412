"""Where compiled kernels are kept.

numba's own cache notices a change in a kernel's file, but not in a file that the kernel calls into, so the
cache has a folder of its own for every state of this package's sources.
"""

import hashlib
import os
import stat
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from numba.core import config


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
    """Of this user alone: what is found there is run."""
    if not hasattr(os, "getuid"):
        return Path(tempfile.gettempdir()) / "clearloop"  # Windows: everybody has a folder of one's own
    folder = Path(tempfile.gettempdir()) / f"clearloop-{os.getuid()}"
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        about = folder.lstat()
        if stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid() and not about.st_mode & 0o022:
            return folder
    return Path(tempfile.mkdtemp(prefix="clearloop-"))


def _folder() -> str:
    """A folder named after the sources of everything that a kernel may contain."""
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
