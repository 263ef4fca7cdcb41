"""Writing a file in one step: it holds the old content or the new, never a part."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path

from toolgen.errors import ToolgenError


def replace_file(path: Path, content: bytes, fault: type[ToolgenError] = ToolgenError) -> None:
    """Put the content in the place of what the file holds, in one step.

    A file that is there keeps its permissions, of a symbolic link the target is replaced. Raises `fault`, with the
    old file as it was, for what is no regular file, is read-only or cannot be written.
    """
    target = Path(os.path.realpath(path))
    try:
        mode = _mode_of(target, fault)
        temporary = target.parent / f".toolgen-{secrets.token_hex(8)}.tmp"
        try:
            _write(temporary, content, mode)
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        _sync_folder(target.parent)
    except FileNotFoundError:
        raise fault(f"{path} cannot be written: there is no folder {target.parent}") from None
    except OSError as error:
        raise fault(f"{path} cannot be written: {error.strerror or error}") from error


def _mode_of(target: Path, fault: type[ToolgenError]) -> int | None:
    """The permissions of the file that is there, None without one. Raises `fault` where none can be replaced."""
    try:
        found = target.lstat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        kind = "is a directory" if stat.S_ISDIR(found.st_mode) else "is not a regular file"
        raise fault(f"{target} {kind}; name a file to write to")
    if not os.access(target, os.W_OK):
        raise fault(f"{target} cannot be written: it is read-only")
    return stat.S_IMODE(found.st_mode)


def _write(temporary: Path, content: bytes, mode: int | None) -> None:
    """Make a file and have it on the disk; a new one gets the permissions the umask leaves."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with open(os.open(temporary, flags, 0o666 if mode is None else 0o600), "wb") as file:
        file.write(content)
        file.flush()
        if mode is not None:
            os.chmod(temporary, mode)
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):  # not every system can open or sync a folder
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
