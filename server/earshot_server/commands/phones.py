"""`earshot phones`."""

from __future__ import annotations

import json
from typing import Annotated

import msgspec
from cyclopts import App, Parameter
from cyclopts.validators import Number

from earshot_server.commands.options import DEFAULT, AsJson, OperatorConnection

app = App(name="phones", help="Count the phones that a server knows, or erase one.")


@app.command(name="list")
def list_phones(*, connection: OperatorConnection = DEFAULT, as_json: AsJson = False) -> None:
    """Count enrolled phones; identities are not shown."""
    counts = connection.operator().phones()
    if as_json:
        print(json.dumps(msgspec.to_builtins(counts)))
        return
    print(f"enrolled: {counts.enrolled}; of these in a phase: {counts.in_phases}")


@app.command
def erase(
    phone: Annotated[int, Parameter(validator=Number(gte=1))],
    /,
    *,
    connection: OperatorConnection = DEFAULT,
) -> None:
    """Delete everything about a phone, for good; for administrators.

    Args:
        phone: Number that the phone shows: `enrolled as phone 17`.
    """
    connection.operator().erase(phone)
    print(f"phone {phone} is erased")
