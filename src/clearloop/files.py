"""Files are written whole or not at all, and are read up to a size limit."""

import errno
import json
import math
import os
import re
import stat
import sys
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NoReturn
from zlib import crc32

from clearloop.errors import ClearloopError

LOCK = ".lock"  # the file that a process holds while a folder is its own
LARGEST_JSON = 64 * 1024 * 1024  # bytes of a file that we wrote ourselves
_LONGEST_NAME = 60


def file_name(text: str) -> str:
    """Return a file name for a title: ASCII letters, digits, `.`, `_` and `-`.

    Two different titles may give the same file name.
    """
    bare = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", bare).strip("._-")[:_LONGEST_NAME].rstrip("._-")
    return plain or f"unnamed-{crc32(text.encode()):08x}"


@contextmanager
def whole_file(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for writing that takes its name only when its whole content is on the disk.

    The half-written files of processes that were killed while they wrote the same file are removed.

    Raises:
        ClearloopError: The file cannot be written. Nothing is left behind.
    """
    path = Path(path)
    partial = path.parent / f".{path.name}.{os.getpid()}.partial"
    try:
        with partial.open("wb") as file:
            with suppress(OSError):  # not every file system has locks, or lets its folders be listed
                _lock(file)
                _remove_abandoned(path, partial)
            yield file
            file.flush()
            os.fsync(file.fileno())  # or a power cut may leave the name without the content
        partial.replace(path)
    except OSError as error:
        raise ClearloopError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):  # it has been renamed, or the folder did not exist
            partial.unlink()


def _remove_abandoned(path: Path, own: Path) -> None:
    """Remove the half-written files of dead processes; those of living ones are locked."""
    name = re.compile(rf"{re.escape(f'.{path.name}.')}\d+\.partial")
    for other in own.parent.iterdir():
        if name.fullmatch(other.name) and other != own:
            with suppress(OSError):  # it is locked, or just gone; Windows removes no file that is open
                with other.open("r+b") as file:
                    _lock(file)
                other.unlink()


def _lock(file: BinaryIO) -> None:
    """Lock a file until it is closed or its process ends; an OSError if another process holds it."""
    if sys.platform != "win32":
        from fcntl import LOCK_EX, LOCK_NB, flock

        flock(file, LOCK_EX | LOCK_NB)


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Lock a folder, because two processes would write the same files.

    Args:
        folder: The folder, which exists.

    Raises:
        ClearloopError: Another process holds the lock.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise ClearloopError(
            f"{folder}: another process is at work there: wait for it, or stop it"
        ) from error
    try:
        yield
    finally:
        lock.release()


def file_bytes(content: str | bytes) -> bytes:
    """Return the bytes of a file whose content is text, in UTF-8, or is bytes already."""
    return content.encode() if isinstance(content, str) else content


def zipped(files: Mapping[str, bytes]) -> bytes:
    """Return a zip archive; the same files give the same bytes, everywhere and at any time.

    Args:
        files: The content of each file by its path in the archive, in the order in which they stand there.
    """
    from io import BytesIO
    from zipfile import ZipFile, ZipInfo

    packed = BytesIO()
    with ZipFile(packed, "w") as archive:  # stored: compressed bytes depend on the library
        for name, content in files.items():
            entry = ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            entry.create_system, entry.external_attr = 3, 0o644 << 16
            archive.writestr(entry, content)
    return packed.getvalue()


def check_ends(path: Path) -> None:
    """Check that reading a file cannot wait or go on for ever, as it can for a device or a pipe.

    Raises:
        OSError: It is a device or a pipe, or there is no such file.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # opening a folder fails in the system's words
        raise OSError(errno.EINVAL, "a device or a pipe may never end: copy its content to a file", str(path))


def read_bytes(path: str | Path, largest: int) -> bytes:
    """Read a file.

    Args:
        path: The file.
        largest: The most bytes that the file may have.

    Raises:
        ClearloopError: The file cannot be read, or is larger.
    """
    try:
        check_ends(Path(path))
        with Path(path).open("rb") as file:
            content = file.read(largest + 1)
    except (OSError, ValueError) as error:  # a NUL byte in a name is a ValueError
        raise ClearloopError(
            f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from error
    if len(content) > largest:
        raise ClearloopError(f"{path}: larger than the {largest // 1024:,} KiB that such a file may have")
    return content


def read_text(path: str | Path, largest: int) -> str:
    """Read a UTF-8 text file.

    Args:
        path: The file.
        largest: The most bytes that the file may have.

    Raises:
        ClearloopError: The file cannot be read, is larger, or is not UTF-8.
    """
    content = read_bytes(path, largest)
    try:
        return content.decode("utf-8-sig")  # Windows editors put a byte-order mark first
    except UnicodeDecodeError as error:
        raise ClearloopError(f"{path}: not UTF-8 text (byte {error.start})") from error


def read_json(path: str | Path) -> Any:
    """Read a JSON file that clearloop wrote.

    Raises:
        ClearloopError: The file cannot be read, or it is damaged.
    """
    try:
        return json.loads(read_text(path, LARGEST_JSON), parse_constant=_not_json, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise ClearloopError(f"{path}: damaged: {error}") from error


def _not_json(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _not_json(text)
