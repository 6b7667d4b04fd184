"""`earshot ledger`: what a phone has released."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from earshot_client.calendar import Calendar
from earshot_client.commands import folder, statement
from earshot_client.store.encrypted import EncryptedStore
from earshot_client.store.interface import LostLedgerError
from earshot_client.store.recovery import Recovery, recover_ledger
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.files import OWNER_ONLY
from earshot_protocol.privacy.ledger import DamagedLedgerError, Ledger

app = App()


@app.default
def ledger(
    *,
    data: Path,
    recover: bool = False,
    export: Path | None = None,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Show a phone's releases with their days and costs, and the budget left.

    Costs are per recording and for the phone as a whole. The limits are those of the phone's last
    visits to a server.

    Args:
        data: The phone's folder, the --data of `earshot phone`.
        recover: Repair a damaged file: keep what can be read, and count the lost part of the ledger
            as infinite cost.
        export: New file for the statement as JSON, readable by its owner only.
        as_json: Print the statement as one JSON object, and nothing else.
    """
    path, key = folder.existing(data)
    if recover:
        print(_said(recover_ledger(path, key)), file=sys.stderr if as_json else sys.stdout)
    with closing(EncryptedStore(path, key)) as store:
        limits = folder.limits(store)
        try:
            kept = Ledger(store.ledger())
        except DamagedLedgerError as error:
            raise LostLedgerError(str(error)) from error
        today = Calendar(store, time.time).today()
    as_text = json.dumps(statement.plain(kept, limits, today), ensure_ascii=False, indent=1)
    if export is not None:
        _write(export, as_text + "\n")
    if as_json:
        print(as_text)
    elif export is None:
        print("\n".join(statement.lines(kept, limits, today)))


def _said(recovery: Recovery) -> str:
    if not recovery.lost:
        return f"nothing to recover: all {recovery.kept} entries are intact"
    said = (
        f"{recovery.kept} entries could be read; lost entries count as infinite cost, so no budget "
        "allows a further release"
    )
    if recovery.aside is not None:
        said += f". The damaged file could not be opened; it is now {recovery.aside}"
    return said


def _write(path: Path, text: str) -> None:
    """Write a file that only its owner can read; replace none."""
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, OWNER_ONLY)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise InvalidInputError(
            f"--export {path}: no new file can be made there ({error.strerror}); name another"
        ) from error
