"""A secret key in a file of its own, for machines without a key store.

An app on a phone keeps the key where only the phone's hardware reads it (Android's Keystore,
Apple's Keychain); other machines use a file that only its owner can read.
"""

from __future__ import annotations

import os
from pathlib import Path

from earshot_client.store.sealed_file import KEY_BYTES
from earshot_protocol.errors import LocalError
from earshot_protocol.files import NO_PERMISSIONS, made_whole

__all__ = ["KeyFileError", "key_in"]


class KeyFileError(LocalError):
    """A key file that is missing, of the wrong size, or readable by others."""


def key_in(path: Path, may_create: bool) -> bytes:
    """Return the 32 secret bytes in the file.

    Args:
        path: Path of the file.
        may_create: Whether a new key, from the operating system's randomness, is made if the file
            does not exist; False if data is sealed under a lost key.

    Raises:
        KeyFileError: There is no valid key, or others than its owner can read it.
    """
    if may_create and not path.exists():
        _create(path)
    try:
        with path.open("rb") as file:
            _check_unread(file.fileno(), path)
            key = file.read(KEY_BYTES + 1)
    except OSError as error:
        raise KeyFileError(f"the key cannot be read: {error}") from error
    if len(key) != KEY_BYTES:
        raise KeyFileError(f"{path} does not hold {KEY_BYTES} bytes: it is not a key, or damaged")
    return key


def _create(path: Path) -> None:
    """Make the file; of two callers that make it at the same time, one wins."""
    try:
        with made_whole(path) as fresh, fresh.open("wb") as file:
            _check_unread(file.fileno(), path)
            file.write(os.urandom(KEY_BYTES))
    except OSError as error:
        raise KeyFileError(f"the key cannot be made: {error}") from error


def _check_unread(file: int, path: Path) -> None:
    if os.fstat(file).st_mode & 0o077:
        raise KeyFileError(
            f"{path} can be read by others; run `chmod 600` on it, or make a new one; "
            f"{NO_PERMISSIONS}"
        )
