"""`earshot operator`."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import App, Parameter

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.files import replacement
from earshot_server.api.views import Audit, NewOperator, Operators, OperatorToken
from earshot_server.commands.options import DEFAULT, AsJson, OperatorConnection, refuse_existing
from earshot_server.operator_client import TOKEN_VARIABLE
from earshot_server.records import AuditEntry
from earshot_server.store.operators import Role

app = App(
    name="operator",
    help="Manage operators and read the audit log; for administrators.",
)

Name = Annotated[
    str, Parameter(help="Name of the operator: lower-case letters, digits, dots, hyphens.")
]


@app.command
def add(
    name: Name,
    /,
    *,
    role: Role = Role.VIEWER,
    connection: OperatorConnection = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Add an operator, and print the token, which is shown only once.

    Args:
        role: Rights of the operator. viewer: read; operator: also invite, start and stop; admin:
            also manage operators and erase phones.
    """
    try:
        new = msgspec.convert({"name": name, "role": role.value}, NewOperator)
    except msgspec.ValidationError as error:
        raise InvalidInputError(
            f"{name!r}: a name has 1 to 32 lower-case letters, digits, dots, underscores and "
            "hyphens, a letter first"
        ) from error
    _show(connection.operator().add_operator(new), as_json)


@app.command(name="list")
def list_operators(*, connection: OperatorConnection = DEFAULT, as_json: AsJson = False) -> None:
    """List all operators and their roles; `operator` has the token of the data folder."""
    operators = connection.operator().operators()
    if as_json:
        print(msgspec.json.encode(Operators(operators=operators)).decode())
        return
    for one in operators:
        print(f"{one.name:<32}  {one.role.value}")


@app.command
def keys(*, connection: OperatorConnection = DEFAULT, as_json: AsJson = False) -> None:
    """Show the public keys of the two operators of sums, which apps pin."""
    known = connection.operator().two_operators()
    if as_json:
        print(msgspec.json.encode(known).decode())
    elif known.helper:
        print(f"leader  {known.leader}\nhelper  {known.helper}")
    else:
        print("this server has no helper: earshot serve --helper URL --helper-key KEY")


@app.command
def remove(name: Name, /, *, connection: OperatorConnection = DEFAULT) -> None:
    """Remove an operator; its token is invalid from then on."""
    connection.operator().remove_operator(name)


@app.command
def rotate(
    name: Name, /, *, connection: OperatorConnection = DEFAULT, as_json: AsJson = False
) -> None:
    """Replace an operator's token; print the new one, which is shown only once."""
    _show(connection.operator().rotate(name), as_json)


@app.command
def audit(
    *,
    out: Path | None = None,
    overwrite: bool = False,
    connection: OperatorConnection = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Show the audit log of operators' actions, newest first.

    Args:
        out: CSV file to write, instead of printing lines.
        overwrite: Replace the file if it exists.
    """
    refuse_existing(out, overwrite)
    entries = connection.operator().audit()
    if as_json:
        print(msgspec.json.encode(Audit(entries=tuple(entries))).decode())
    elif out is not None:
        _write(out, entries)
    else:
        for entry in entries:
            print("  ".join(filter(None, _row(entry)[1:])))


def _show(new: OperatorToken, as_json: bool) -> None:
    if as_json:
        print(json.dumps(msgspec.to_builtins(new)))
        return
    print(new.token)
    print(
        f"This is the token of {new.name}, shown only once: sign in with it in a browser, or give "
        f"it to commands in {TOKEN_VARIABLE}.",
        file=sys.stderr,
    )


def _row(entry: AuditEntry) -> tuple[str, ...]:
    when = datetime.fromtimestamp(entry.at, UTC).isoformat(timespec="seconds")
    return str(entry.entry), when, entry.operator, entry.action, entry.subject, entry.detail


def _write(out: Path, entries: Iterable[AuditEntry]) -> None:
    try:
        with (
            replacement(out) as draft,
            draft.open("w", encoding="utf-8", newline="") as file,
        ):
            table = csv.writer(file)
            table.writerow(AuditEntry.__struct_fields__)
            table.writerows(map(_row, entries))
    except OSError as error:
        raise InvalidInputError(f"cannot write {out}: {error.strerror}") from error
