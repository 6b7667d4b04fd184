"""`earshot phones`."""

from __future__ import annotations

import json
from typing import Annotated

import msgspec
import typer

from earshot_server.commands.options import DEFAULT_DATA, DEFAULT_SERVER, AsJson, Data, Server
from earshot_server.operator_client import OperatorClient, read_token

app = typer.Typer(add_completion=False, no_args_is_help=True)


@app.callback()
def phones() -> None:
    """Count the phones that a server knows, or erase one."""


@app.command("list")
def list_phones(
    server: Server = DEFAULT_SERVER, data: Data = DEFAULT_DATA, as_json: AsJson = False
) -> None:
    """How many phones there are; which ones is nobody's business."""
    counts = OperatorClient(server, read_token(data)).phones()
    if as_json:
        typer.echo(json.dumps(msgspec.to_builtins(counts)))
        return
    typer.echo(f"enrolled: {counts.enrolled}; of these in a phase: {counts.in_phases}")


@app.command()
def erase(
    phone: Annotated[
        int, typer.Argument(min=1, help="The number that the phone shows: `enrolled as phone 17`.")
    ],
    server: Server = DEFAULT_SERVER,
    data: Data = DEFAULT_DATA,
) -> None:
    """Delete everything about a phone, for good; for administrators."""
    OperatorClient(server, read_token(data)).erase(phone)
    typer.echo(f"phone {phone} is erased")
