"""A phone's store with two recordings of three numbers, a value and a ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from earshot_client.store.encrypted import EncryptedStore
from earshot_client.store.interface import Store

KEY = bytes(range(32))
DIMENSIONS = 3
VOICE = np.array([1.5, -2.25, 3.0], dtype=np.float32)


def open_file(path: Path, key: bytes = KEY) -> EncryptedStore:
    return EncryptedStore(path, key, dimensions=DIMENSIONS)


def fill(store: Store) -> int:
    """Put something of everything into a store, and return the number of the first recording."""
    first = store.add(VOICE)
    store.label(first, "café")
    store.add(-VOICE)
    store.put("state", b"some state")
    store.append_ledger(b"first entry")
    store.append_ledger(b"second entry")
    return first


def content(store: Store) -> tuple[Any, ...]:
    embeddings, choices = store.recordings()
    return embeddings.tolist(), choices, store.get("state"), store.get("b"), store.ledger()
