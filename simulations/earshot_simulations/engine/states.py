"""Where phones lie between steps: a file for each shard, beside the one it was made from.

A shard is a run of phones with neighbouring numbers. A step writes its shards under a new version
and removes nothing, so whoever dies half-way leaves what it began from, and the same phones can be
asked again. Files hold what a real phone would seal; the folder is readable by its owner alone.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from earshot_simulations.engine.interface import EngineError

NEW = 0
"""The version of a shard that no step has written: all its phones are new."""

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_decoder = msgspec.msgpack.Decoder(dict[int, bytes])
_encoder = msgspec.msgpack.Encoder()


class NoRoomError(EngineError):
    """The disk is full, or a quota or limit of it, while states were written."""


@dataclass(frozen=True)
class States:
    """The states of phones, in files of a folder that exists.

    Attributes:
        folder: of these files and no others.
        phones: how many there are in all, of which an error says how much room they need.
    """

    folder: Path
    phones: int

    def read(self, shard: int, version: int) -> dict[int, bytes]:
        """The states of a shard's phones as a step has left them; those that are new have none."""
        return {} if version == NEW else _decoder.decode(self._file(shard, version).read_bytes())

    def write(self, shard: int, version: int, states: Mapping[int, bytes]) -> None:
        """Keep the states of a shard's phones, in place of what was written under this version.

        Raises:
            NoRoomError: the disk is full; says of which folder, and how much is needed.
        """
        packed = _encoder.encode(states)
        each = len(packed) / max(1, len(states))
        write_whole(self._file(shard, version), packed, 2 * each * self.phones)

    def forget(self, shard: int, version: int) -> None:
        """Remove what a later version has replaced."""
        self._file(shard, version).unlink(missing_ok=True)

    def _file(self, shard: int, version: int) -> Path:
        return self.folder / f"{shard}-{version}"


def write_whole(file: Path, content: bytes, needed: float) -> None:
    """Write a file, whole or not at all, in place of one of its name.

    Args:
        file: in a folder that exists.
        content: of it.
        needed: bytes that all such files take together, about; for the error.

    Raises:
        NoRoomError: the disk is full; says of which folder, and how much is needed.
    """
    # A name of its own: a process that was thought to be dead may be writing the same.
    part = file.with_suffix(f".{os.getpid()}")
    try:
        part.write_bytes(content)
        part.replace(file)
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        free = shutil.disk_usage(file.parent).free
        raise NoRoomError(
            f"{file.parent}: no room for the states of simulated phones, which need about "
            f"{needed / 2**20:,.0f} MB (those of two steps; {free / 2**20:,.0f} MB are free); make "
            "room, lift the limit, or set TMPDIR to a folder of a larger disk"
        ) from None
