"""The folder of a reference phone: its file, the key to it, and the limits that it keeps."""

from __future__ import annotations

import errno
import os
from dataclasses import asdict, fields
from pathlib import Path

import msgspec

from earshot_client.policy import Policy
from earshot_client.store.encrypted import EncryptedStore
from earshot_client.store.interface import Store
from earshot_client.store.key_file import key_in
from earshot_protocol.errors import InvalidInputError

_STORE, _KEY = "phone.db", "phone.key"
_LIMITS = "limits"
"""Name of the stored value with the limits of the phone's last visits to a server."""


def opened(data: Path) -> EncryptedStore:
    """Open the store in the folder; make both if they do not exist."""
    try:
        for folder in (*reversed(data.parents), data):  # `parents` would follow the umask
            if not folder.exists():
                folder.mkdir(mode=0o700, exist_ok=True)
        if not data.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    except OSError as error:
        raise InvalidInputError(
            f"--data {data}: no folder can be made there ({error.strerror}); name another"
        ) from error
    path = data / _STORE
    return EncryptedStore(path, key_in(data / _KEY, may_create=not path.exists()))


def existing(data: Path) -> tuple[Path, bytes]:
    """Return the phone's file in the folder, and its key.

    Raises:
        InvalidInputError: There is no phone in the folder.
    """
    path = data / _STORE
    if not path.is_file():
        raise InvalidInputError(
            f"--data {data}: no phone lives there ({path} is missing); name the --data of `earshot "
            "phone`"
        )
    return path, key_in(data / _KEY, may_create=False)


def keep_limits(store: Store, policy: Policy) -> None:
    """Save the limits in force, which `earshot ledger` shows beside the costs."""
    given = asdict(policy).items()
    numbers = {name: value for name, value in given if not isinstance(value, tuple)}
    limits = msgspec.msgpack.encode(numbers)
    if store.get(_LIMITS) != limits:
        store.put(_LIMITS, limits)


def limits(store: Store) -> Policy:
    """Return the limits of the phone's last visits to a server; before the first, the default."""
    saved = store.get(_LIMITS)
    if saved is None:
        return Policy()
    known = {field.name for field in fields(Policy)}
    kept = msgspec.msgpack.decode(saved, type=dict[str, float | bool])
    return Policy(**{name: value for name, value in kept.items() if name in known})  # type: ignore[arg-type]
