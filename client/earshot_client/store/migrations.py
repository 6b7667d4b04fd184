"""Migration of a file of an older version to this version, in one transaction.

Version 1 did not record whose embeddings it held. Version 2 had no events in its ledger: entries
without them stay unchanged, chained, but older software could not read new ones. Version 3 did not
know on which day a recording was made, nor whether a histogram had counted it. Version 4 had no
days in its ledger: as with events, old entries stay unchanged.
"""

from __future__ import annotations

from earshot_client.store.interface import ENCODER
from earshot_client.store.rows import NOT_MADE
from earshot_client.store.sealed_file import SCHEMA_VERSION, SealedFile

_FIRST_ENCODER = b"log-mel-1"
"""Encoder of every file of version 1, which did not name it."""


def migrate(file: SealedFile) -> None:
    """Bring a file to `SCHEMA_VERSION`, within a transaction of the caller's.

    Raises:
        DamagedStoreError: A row is not what was written.
    """
    version = file.version
    if version == SCHEMA_VERSION:
        return
    if version < 2 and not file.rows("SELECT 1 FROM named_values WHERE name = ?", ENCODER):
        sealed = file.seal("named_values", ENCODER, _FIRST_ENCODER)
        file.rows("INSERT INTO named_values VALUES (?, ?)", ENCODER, sealed)
    if version < 4:
        for number, sealed in file.rows("SELECT id, sealed FROM recordings"):
            plaintext = file.unseal("recordings", number, sealed) + NOT_MADE
            file.rows(
                "UPDATE recordings SET sealed = ? WHERE id = ?",
                file.seal("recordings", number, plaintext),
                number,
            )
    file.version = SCHEMA_VERSION
