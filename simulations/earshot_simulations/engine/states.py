"""States of phones between steps: a file for each shard and version.

A shard is a range of phone numbers. A step writes its shards under a new version and keeps the
previous one, so the same phones can answer again if a process dies. Files hold data that a real
phone would encrypt; only the owner can read the folder.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from earshot_simulations.engine.interface import EngineError

NEW = 0
"""Version of a shard before the first step: all its phones are new."""

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOMEM})
"""Error numbers of a full disk, quota or memory."""
_decoder = msgspec.msgpack.Decoder(dict[int, bytes])
_encoder = msgspec.msgpack.Encoder()


class NoRoomError(EngineError):
    """The disk is full, or a quota or limit is reached."""


@dataclass(frozen=True)
class States:
    """The states of phones, in files of an existing folder.

    Attributes:
        folder: Folder of these files and no others.
        phones: Total number of phones, to estimate the space needed in error messages.
    """

    folder: Path
    phones: int

    def read(self, shard: int, version: int) -> dict[int, bytes]:
        """Return the states of a shard's phones after a step; new phones have none."""
        return {} if version == NEW else _decoder.decode(self._file(shard, version).read_bytes())

    def write(self, shard: int, version: int, states: Mapping[int, bytes]) -> None:
        """Write the states of a shard's phones, replacing any of the same version.

        Raises:
            NoRoomError: The disk is full; the message names the folder and the space needed.
        """
        packed = _encoder.encode(states)
        each = len(packed) / max(1, len(states))
        write_whole(self._file(shard, version), packed, 2 * each * self.phones)

    def forget(self, shard: int, version: int) -> None:
        """Remove a version that a later one has replaced."""
        self._file(shard, version).unlink(missing_ok=True)

    def _file(self, shard: int, version: int) -> Path:
        return self.folder / f"{shard}-{version}"


def write_whole(file: Path, content: bytes, needed: float) -> None:
    """Write a file atomically, replacing an existing one.

    Args:
        file: File in an existing folder.
        content: Content of the file.
        needed: Approximate bytes of all such files together; for the error message.

    Raises:
        NoRoomError: The disk is full; the message names the folder and the space needed.
    """
    # A name per process: one that was thought dead may be writing the same file.
    part = file.with_suffix(f".{os.getpid()}")
    with no_room(file.parent, "the states of simulated phones", needed):
        part.write_bytes(content)
        part.replace(file)


@contextmanager
def no_room(folder: Path, what: str, needed: float) -> Iterator[None]:
    """Name a full disk, and the bytes that are needed in a folder.

    Raises:
        NoRoomError: The disk is full; the message names the folder and the space needed.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        free = shutil.disk_usage(folder).free
        raise NoRoomError(
            f"{folder}: no room for {what}, which need about {needed / 2**20:,.0f} MB "
            f"({free / 2**20:,.0f} MB are free); make room, lift the limit, or set TMPDIR to a "
            "folder of a larger disk"
        ) from None
