"""The key of a run, from which phones that were killed draw the noise that they had.

A phone keeps its state on its own disk, so a sum that was cut short goes on with the noise that it
had. Phones that are simulated in one process have the key of a run instead, which the operating
system made. Whoever learns the key can take the noise away: it is a secret of the phones, lies in a
file that its owner alone can read, and is gone when the run is done.
"""

from __future__ import annotations

import os
from pathlib import Path

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.files import OWNER_ONLY, replace_file
from earshot_protocol.keyed_randomness import KEY_BYTES


def key_of(path: Path) -> bytes:
    """The key in a file; a new one, on the disk when this returns, if the file is not there.

    Raises:
        InvalidInputError: the file holds something else.
    """
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        key = os.urandom(KEY_BYTES)
        replace_file(path, key, OWNER_ONLY)
    if len(key) != KEY_BYTES:
        raise InvalidInputError(f"{path}: holds {len(key)} bytes, and no key of {KEY_BYTES}")
    return key
