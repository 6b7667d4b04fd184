"""`earshot invite`."""

from __future__ import annotations

import json
from typing import Annotated

import msgspec
import typer

from earshot_protocol.api import Invite
from earshot_server.commands.options import DEFAULT_DATA, DEFAULT_SERVER, AsJson, Data, Server
from earshot_server.operator_client import OperatorClient, read_token

app = typer.Typer(add_completion=False)


@app.callback(invoke_without_command=True)
def invite(
    server: Server = DEFAULT_SERVER,
    data: Data = DEFAULT_DATA,
    uses: Annotated[int, typer.Option(min=1, help="Phones that may enrol with the code.")] = 1,
    days: Annotated[float, typer.Option(help="How long it is valid.")] = 30.0,
    cohort: Annotated[
        str, typer.Option(help="To which the phones belong: lower-case letters, digits, hyphens.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Print an invitation code with which phones may enrol."""
    invitation = OperatorClient(server, read_token(data)).invite(
        Invite(uses=uses, days=days, cohort=cohort)
    )
    typer.echo(json.dumps(msgspec.to_builtins(invitation)) if as_json else invitation.code)
