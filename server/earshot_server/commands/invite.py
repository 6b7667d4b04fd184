"""`earshot invite`."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import msgspec
from cyclopts import App, Parameter
from cyclopts.validators import Number

from earshot_protocol.api import Invite
from earshot_server.commands.options import DEFAULT, AsJson, OperatorConnection

app = App()


@app.default
def invite(
    *,
    uses: Annotated[int, Parameter(validator=Number(gte=1))] = 1,
    days: float = 30.0,
    cohort: str = "",
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
        phone_page: URL of a page that holds a phone, or `here` for the one that the server serves:
            print a link to it with the code, the server and both operators in it, and in a terminal
            its QR code.
        phone_server: URL at which that phone reaches the server; by default the one of --server.
    """
    from earshot_server.origins import page_at
    from earshot_server.phone_links import link_to, printed

    operator = connection.operator()
    server = phone_server or connection.address
    page = None if phone_page is None else page_at(phone_page, server)
    operators = None if page is None else operator.two_operators()
    invited = Invite(uses=uses, days=days, cohort=cohort)
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
