"""`earshot invite`, `earshot invite list` and `earshot invite revoke`."""

from __future__ import annotations

import json
import sys
import time
from typing import Annotated

import msgspec
from cyclopts import App, Parameter
from cyclopts.validators import Number

from earshot_protocol.api import InvitationName, Invite
from earshot_protocol.errors import InvalidInputError
from earshot_server.api.views import Invitations
from earshot_server.commands.options import DEFAULT, AsJson, OperatorConnection
from earshot_server.dashboard.wording import counted, from_now
from earshot_server.records import InvitationRecord

app = App()


@app.default
def invite(
    *,
    uses: Annotated[int, Parameter(validator=Number(gte=1))] = 1,
    days: float = 30.0,
    cohort: str = "",
    name: str = "",
    phone_page: str | None = None,
    phone_server: str | None = None,
    connection: OperatorConnection = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Print an invitation code with which phones may enrol.

    Args:
        uses: Number of phones that may enrol with the code.
        days: Days for which the code is valid.
        cohort: Cohort that these phones belong to: lower-case letters, digits, hyphens.
        name: Name under which the invitation is listed and revoked; the server makes one by
            default.
        phone_page: URL of a page that holds a phone, or `here` for the one that the server serves:
            print a link to it with the code, the server and both operators in it, and in a terminal
            its QR code.
        phone_server: URL at which that phone reaches the server; by default the one of --server.
    """
    from earshot_server.origins import page_at
    from earshot_server.phone_links import link_to, printed

    if not _is_name(name):
        raise InvalidInputError(
            f"--name {name!r}: give at most 32 lower-case letters, digits, dots, underscores and "
            "hyphens, a letter or digit first"
        )
    operator = connection.operator()
    server = phone_server or connection.address
    page = None if phone_page is None else page_at(phone_page, server)
    operators = None if page is None else operator.two_operators()
    invited = Invite(uses=uses, days=days, cohort=cohort, name=name)
    if page is None or operators is None:
        invitation = operator.invite(invited)
        print(json.dumps(msgspec.to_builtins(invitation)) if as_json else invitation.code)
        return
    keys = operators.leader, operators.helper
    link_to(page, server, "checked before a code is signed", *keys)
    invitation = operator.invite(invited)
    link = link_to(page, server, invitation.code, *keys)
    if as_json:
        print(json.dumps(msgspec.to_builtins(invitation) | {"link": link}))
        return
    print(link)
    if sys.stdout.isatty():
        print(printed(link))


@app.command(name="list")
def list_invitations(*, connection: OperatorConnection = DEFAULT, as_json: AsJson = False) -> None:
    """List invitations, newest first, without their codes."""
    invitations = connection.operator().invitations()
    if as_json:
        print(msgspec.json.encode(Invitations(invitations=invitations)).decode())
        return
    for each in invitations:
        print(_line(each, time.time()))


@app.command
def revoke(
    name: Annotated[str, Parameter(help="Name of the invitation, as `list` shows it.")],
    /,
    *,
    connection: OperatorConnection = DEFAULT,
) -> None:
    """Revoke an invitation: no more phones enrol with it; those that have, stay."""
    if not name or not _is_name(name):
        raise InvalidInputError(
            f"{name!r} is not the name of an invitation: `earshot invite list` shows them"
        )
    connection.operator().revoke(name)
    print(f"the invitation {name} is revoked")


def _is_name(text: str) -> bool:
    try:
        msgspec.convert(text, InvitationName)
    except msgspec.ValidationError:
        return False
    return True


def _line(each: InvitationRecord, now: float) -> str:
    parts = [
        f"{each.name:<16}",
        f"{each.state.value:<8}",
        f"{each.used} of {counted(each.uses, 'phone')}",
        f"made {from_now(each.made, now)}",
    ]
    if each.revoked is not None:
        parts.append(f"revoked {from_now(each.revoked, now)}")
    else:
        ends = "expired" if each.expires <= now else "expires"
        parts.append(f"{ends} {from_now(each.expires, now)}")
    return "  ".join([*parts, *([f"cohort {each.cohort}"] if each.cohort else [])])
