"""Replacing a file so that a reader, after a crash at any moment, finds the old bytes or the new
ones, whole: by the rule, the names and the locks of engine/files/atomic_file.h, so that the program
and Python keep out of each other's way."""

import fcntl
import os
import stat
from pathlib import Path
from typing import Optional, Union

_LARGEST_WRITE = 2**30  # Linux transfers at most 2^31 - 4096 bytes in one call


def _target_of(path: Path) -> Path:
    """Returns the file that the bytes replace: a link is followed, so that it stays one."""
    if not path.exists():
        if path.is_symlink():
            raise ValueError(
                f"{path}: is a link to a file that does not exist; nothing was written, name that "
                "file"
            )
        return path
    if not path.is_file():
        raise ValueError(f"{path}: is not a regular file; nothing was written, name a file")
    # Replacing takes no permission of the file's own, but whoever took that away wants to keep it.
    if not os.access(path, os.W_OK, effective_ids=True):
        raise PermissionError(
            f"{path}: is write-protected; nothing was written, name another file"
        )
    return path.resolve() if path.is_symlink() else path


def _lock(file: int, temporary: Path, target: Path) -> None:
    """Raises ValueError where another writer has the temporary file, or had it a moment ago."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        busy = not os.path.samestat(os.fstat(file), os.lstat(temporary))
    except (BlockingIOError, FileNotFoundError):
        busy = True
    except OSError:  # a file system without locks keeps nobody away
        busy = False
    if busy:
        raise ValueError(
            f"{target}: another run, or another output of this one, is writing to this file (it "
            f"holds {temporary}); wait until it is over, or name another file"
        )


def _write_and_sync(file: int, data: memoryview, mode: Optional[int]) -> None:
    os.ftruncate(file, 0)  # what a killed writer has left
    if mode is not None:
        os.fchmod(file, mode)
    while data:
        data = data[os.write(file, data[:_LARGEST_WRITE]) :]
    os.fsync(file)


def _sync_folder(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def replace_file(path: Path, data: Union[bytes, memoryview]) -> None:
    """Replaces the whole content. A file that is replaced keeps its permission bits. Raises
    ValueError and OSError; then the file is as it was, unless only its folder was not synced."""
    target = _target_of(path)
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    temporary = target.with_name(target.name + ".tritgrad-tmp")
    how = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW
    file = os.open(temporary, how, 0o666 if mode is None else mode)
    try:
        _lock(file, temporary, target)
        try:
            _write_and_sync(file, memoryview(data), mode)
            os.rename(temporary, target)
        except BaseException:
            os.unlink(temporary)  # while it is still locked
            raise
    finally:
        os.close(file)
    _sync_folder(target.parent)
