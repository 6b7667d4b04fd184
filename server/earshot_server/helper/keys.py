"""The helper's secrets: one key file per sum, in a folder that backups exclude.

A sum is answered only once because its key is erased afterwards. A copy would bring the key back,
so each key is identified by the creation time of its file, which a copy does not have.
"""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import hmac
import logging
import os
import stat
import struct
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from earshot_protocol.errors import LocalError
from earshot_protocol.files import (
    NO_PERMISSIONS,
    OWNER_ONLY,
    made_whole,
    replace_file,
    to_disk,
)
from earshot_server.helper.book import Secret

TAG, README, _DRAFT = "CACHEDIR.TAG", "README", "draft"
_KEY_BYTES, _DIGEST_BYTES = 32, 32
# The first line is what programs look for (https://bford.info/cachedir/).
_TAG = b"""Signature: 8a477f597d28d172789f06886806bc55
# Never back this folder up: README says why.
"""
_README = b"""Never back this folder up, never copy it, never take a snapshot of it.

It holds the keys of sums that are not answered yet, and they are erased so that each sum is
answered once. Whoever brings an erased key back can have a sum answered twice, and the difference
of two answers may be what one phone sent. Backups of the folder above are welcome without this one:
restored from them, the helper gives no total for sums that were open, and says so.

The helper knows each key by the moment at which its file was made. It does not start where a key
of an open sum was copied, restored or moved from another disk, or has a second name (a hard link).
Remove the second names, or this folder: then sums that were open end without a total, and nothing
else is lost. A snapshot of the whole disk brings back such moments as well, and goes unnoticed.
"""

# From <linux/stat.h>: the layout of `struct statx` is the same on every architecture.
_HERE, _NO_LINK, _BIRTH = -100, 0x100, 0x800
_SIZE, _BIRTH_AT = 256, 80

_log = logging.getLogger(__name__)


class KeyFolderError(LocalError):
    """The folder of keys is open to others, or contains keys that this helper did not create."""


class KeyFolder:
    """Folder of the secrets of open sums.

    Changes are durable when a method returns; the caller must hold the database's lock.
    Methods raise `OSError` if the disk fails.

    Args:
        path: Path of the folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def make(self) -> None:
        """Create the folder and the files that exclude it from backups, if missing.

        Raises:
            KeyFolderError: The folder is open to other users.
        """
        self.path.mkdir(mode=0o700, exist_ok=True)
        if self.path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise KeyFolderError(
                f"{self.path} is open to other users: chmod 700 {self.path}; {NO_PERMISSIONS}"
            )
        for name, content in ((TAG, _TAG), (README, _README)):
            if not (self.path / name).exists():
                with made_whole(self.path / name) as draft:
                    draft.write_bytes(content)

    def keep(self, sum_id: bytes, secret: Secret) -> int:
        """Store the secret of a new sum; a leftover file without a record is replaced.

        Returns:
            The moment that identifies the file, to be passed to `secret` and `is_copy`.
        """
        content = secret.key + secret.noise
        digest = hashlib.sha256(sum_id + content).digest()
        replace_file(self._file(sum_id), digest + content, OWNER_ONLY)
        return _moment(self._file(sum_id))

    def secret(self, sum_id: bytes, made: int) -> Secret | None:
        """Return the secret of a sum; None if it is gone, damaged, or a copy (see `is_copy`)."""
        if not self.has(sum_id):
            return None
        if self.is_copy(sum_id, made):
            _log.error("the key of sum %s is a copy, so it gets no total", sum_id.hex())
            return None
        try:
            content = self._file(sum_id).read_bytes()
        except FileNotFoundError:
            return None
        digest, content = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
        if not hmac.compare_digest(digest, hashlib.sha256(sum_id + content).digest()):
            _log.error("the key of sum %s is damaged, so it gets no total", sum_id.hex())
            return None
        return Secret(content[:_KEY_BYTES], content[_KEY_BYTES:])

    def is_copy(self, sum_id: bytes, made: int) -> bool:
        """Return whether there is a key of the sum other than the file made at that moment.

        A file with a second hard link counts as a copy: the link keeps the creation time, and the
        erased content could be written into it again.
        """
        file = self._file(sum_id)
        try:
            return _moment(file) != made or file.lstat().st_nlink > 1
        except FileNotFoundError:
            return False

    def why_copies(self) -> str:
        """Return an explanation of how files may have become copies."""
        if birth(self.path) is not None:
            return (
                "they were copied, restored or moved from another disk, or have second names, hard "
                "links, which you may remove"
            )
        return (
            "they were copied, restored, linked or moved, or were given other owners, permissions "
            "or times, which cannot be told apart on a disk that keeps no times of birth (in "
            "Kubernetes, fsGroup does so at every start, but for fsGroupChangePolicy: "
            "OnRootMismatch)"
        )

    def write(self) -> None:
        """Probe that the folder is writable."""
        (self.path / _DRAFT).write_bytes(_TAG)
        _erase(self.path / _DRAFT)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Lock the folder for a `with` block, against every process and database."""
        handle = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def erase(self, sum_id: bytes) -> None:
        """Erase the secret of a sum, if it exists."""
        _erase(self._file(sum_id))
        # Another process may have removed the file, but not yet synced the folder.
        to_disk(self.path)

    def erase_others(self, open_sums: Collection[bytes]) -> int:
        """Erase all files but the secrets of these sums; return the number of erased files."""
        others = self.others(open_sums)
        for other in others:  # including drafts of a killed process
            _erase(other)
        to_disk(self.path)
        return len(others)

    def others(self, open_sums: Collection[bytes]) -> list[Path]:
        """Return all files other than the secrets of these sums and the folder's own files."""
        kept = {TAG, README} | {self._file(sum_id).name for sum_id in open_sums}
        return [each for each in self.path.iterdir() if each.name not in kept]

    def has(self, sum_id: bytes) -> bool:
        """Return whether there is a secret of this sum."""
        return self._file(sum_id).exists()

    def _file(self, sum_id: bytes) -> Path:
        return self.path / f"{sum_id.hex()}.key"


def birth(path: Path) -> int | None:
    """Return the creation time of a file, in ns since 1970; None if the system has none.

    The time is statx's `stx_btime`. Writing to the file, renaming it, and changing its owner,
    permissions or times do not change it; a copied or restored file has another one. Systems other
    than Linux also have a creation time, but let programs set it.

    Raises:
        OSError: There is no such file.
    """
    path.lstat()
    statx = getattr(ctypes.CDLL(None), "statx", None)  # missing on macOS and in old C libraries
    found = ctypes.create_string_buffer(_SIZE)
    if statx is None or statx(_HERE, os.fsencode(path), _NO_LINK, _BIRTH, found) != 0:
        return None
    (known,) = struct.unpack_from("=I", found)
    seconds, rest = struct.unpack_from("=qI", found, _BIRTH_AT)
    return int(seconds * 10**9 + rest) if known & _BIRTH else None


def _moment(path: Path) -> int:
    """Return the moment that identifies a file, in ns.

    Without a creation time, it is the last change of the file's content, name, owner, permissions
    or times (ctime), which programs cannot set either.
    """
    return birth(path) or path.lstat().st_ctime_ns


def _erase(path: Path) -> None:
    # The file may have a second hard link, which must not keep the content.
    with suppress(FileNotFoundError):
        if not path.is_symlink():
            os.truncate(path, 0)
        path.unlink()
