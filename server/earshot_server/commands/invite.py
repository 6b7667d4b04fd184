"""`earshot invite`."""

from __future__ import annotations

import json
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
    connection: OperatorConnection = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Print an invitation code with which phones may enrol.

    Args:
        uses: Number of phones that may enrol with the code.
        days: Days for which the code is valid.
        cohort: Cohort that these phones belong to: lower-case letters, digits, hyphens.
    """
    invitation = connection.operator().invite(Invite(uses=uses, days=days, cohort=cohort))
    print(json.dumps(msgspec.to_builtins(invitation)) if as_json else invitation.code)
