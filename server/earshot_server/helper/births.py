"""Moments at which files were made: what no copy of a file has, and no program can set."""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path

# From <linux/stat.h>: the layout of `struct statx` is the same on every architecture.
_HERE, _NO_LINK, _BIRTH = -100, 0x100, 0x800
_SIZE, _BIRTH_AT = 256, 80


def birth(path: Path) -> int | None:
    """Return when a file was made, in ns since 1970; None where the system does not say.

    The time is statx's `stx_btime`. Writing to the file, renaming it, and changing its owner,
    permissions or times leave it as it is; a file that was copied or restored has another one.
    Other systems than Linux have such a time as well, but let programs set it.

    Raises:
        OSError: There is no such file.
    """
    path.lstat()
    statx = getattr(ctypes.CDLL(None), "statx", None)  # neither macOS nor an old C library has it
    found = ctypes.create_string_buffer(_SIZE)
    if statx is None or statx(_HERE, os.fsencode(path), _NO_LINK, _BIRTH, found) != 0:
        return None
    (known,) = struct.unpack_from("=I", found)
    seconds, rest = struct.unpack_from("=qI", found, _BIRTH_AT)
    return int(seconds * 10**9 + rest) if known & _BIRTH else None
