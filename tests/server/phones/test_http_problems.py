"""Phones know problems by the names that servers give them."""

from __future__ import annotations

from support.phone_server import problem

from earshot_client.transport.http import ERRORS
from earshot_protocol.api import PROBLEM_PREFIX
from earshot_server.api import problems


def test_the_kinds_are_those_of_the_server() -> None:
    servers = {kind.name for kind in (*problems.KINDS.values(), *problems.HTTP_KINDS.values())}
    assert set(ERRORS) <= servers
    assert problem(400, "malformed").body.count(PROBLEM_PREFIX.encode()) == 1
