"""`earshot operator`."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from earshot_protocol.errors import InvalidInputError
from earshot_server.api.views import Audit, NewOperator, Operators, OperatorToken
from earshot_server.commands.options import DEFAULT_DATA, DEFAULT_SERVER, AsJson, Data, Server
from earshot_server.operator_client import TOKEN_VARIABLE, OperatorClient, read_token
from earshot_server.records import AuditEntry
from earshot_server.store.operators import Role

app = typer.Typer(add_completion=False, no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Lower-case letters, digits, dots and hyphens.")]


@app.callback()
def operator() -> None:
    """Say who may operate the server, and see what they did; for administrators."""


@app.command()
def add(
    name: Name,
    role: Annotated[
        Role,
        typer.Option(
            help="viewer: read; operator: also invite, start and stop; admin: also manage "
            "operators and erase phones."
        ),
    ] = Role.VIEWER,
    server: Server = DEFAULT_SERVER,
    data: Data = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """Add an operator. Prints the token, which is shown this once."""
    try:
        new = msgspec.convert({"name": name, "role": role.value}, NewOperator)
    except msgspec.ValidationError as error:
        raise InvalidInputError(
            f"{name!r}: a name has 1 to 32 lower-case letters, digits, dots, underscores and "
            "hyphens, a letter first"
        ) from error
    _show(OperatorClient(server, read_token(data)).add_operator(new), as_json)


@app.command("list")
def list_operators(
    server: Server = DEFAULT_SERVER, data: Data = DEFAULT_DATA, as_json: AsJson = False
) -> None:
    """All operators and their roles; `operator` is whoever has the token of the data folder."""
    operators = OperatorClient(server, read_token(data)).operators()
    if as_json:
        typer.echo(msgspec.json.encode(Operators(operators=operators)).decode())
        return
    for one in operators:
        typer.echo(f"{one.name:<32}  {one.role.value}")


@app.command()
def remove(name: Name, server: Server = DEFAULT_SERVER, data: Data = DEFAULT_DATA) -> None:
    """Remove an operator, whose token opens nothing from now on."""
    OperatorClient(server, read_token(data)).remove_operator(name)


@app.command()
def rotate(
    name: Name,
    server: Server = DEFAULT_SERVER,
    data: Data = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """Give an operator a new token in the place of the old one. Prints it this once."""
    _show(OperatorClient(server, read_token(data)).rotate(name), as_json)


@app.command()
def audit(
    out: Annotated[Path | None, typer.Option(help="A CSV file, instead of lines.")] = None,
    server: Server = DEFAULT_SERVER,
    data: Data = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """What operators did, the newest first."""
    entries = OperatorClient(server, read_token(data)).audit()
    if as_json:
        typer.echo(msgspec.json.encode(Audit(entries=tuple(entries))).decode())
    elif out is not None:
        _write(out, entries)
    else:
        for entry in entries:
            typer.echo("  ".join(filter(None, _row(entry)[1:])))


def _show(new: OperatorToken, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(msgspec.to_builtins(new)))
        return
    typer.echo(new.token)
    typer.echo(
        f"This is the token of {new.name}, shown this once: on the command line {TOKEN_VARIABLE}, "
        f"in a browser the password of the user {new.name}.",
        err=True,
    )


def _row(entry: AuditEntry) -> tuple[str, ...]:
    when = datetime.fromtimestamp(entry.at, UTC).isoformat(timespec="seconds")
    return str(entry.entry), when, entry.operator, entry.action, entry.subject, entry.detail


def _write(out: Path, entries: Iterable[AuditEntry]) -> None:
    try:
        with out.open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file)
            table.writerow(AuditEntry.__struct_fields__)
            table.writerows(map(_row, entries))
    except OSError as error:
        raise InvalidInputError(f"cannot write {out}: {error.strerror}") from error
