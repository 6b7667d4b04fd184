"""Endpoints for administrators: manage operators, read the audit log, erase phones."""

from __future__ import annotations

from collections.abc import Callable

from flask import Blueprint, Response, request

from earshot_protocol.api import AUDIT, ENROL, OPERATORS
from earshot_protocol.errors import MalformedMessageError
from earshot_server.api import bodies
from earshot_server.api.authentication import needs, present_operator
from earshot_server.api.orders import Orders
from earshot_server.api.problems import UnknownPhoneError
from earshot_server.api.views import (
    Audit,
    NewOperator,
    Operators,
    OperatorView,
    PhoneCounts,
)
from earshot_server.store.database import Database
from earshot_server.store.erasure import Erasure
from earshot_server.store.operators import Role


class Administration:
    """Endpoints for administrators. A change and its audit log entry are one transaction.

    Args:
        database: Database that keeps everything.
        orders: Orders that operators may give.
    """

    def __init__(self, database: Database, orders: Orders) -> None:
        self._orders = orders
        self._erasure = Erasure(database)

    def blueprint(self, authenticate: Callable[[], None]) -> Blueprint:
        """Return the endpoints; `authenticate` runs before each."""
        blueprint = Blueprint("administration", __name__)
        blueprint.before_request(authenticate)
        blueprint.before_request(bodies.negotiate)
        one = f"{OPERATORS}/<operator:name>"
        for route, path, view in (
            (blueprint.get, OPERATORS, self.operators),
            (blueprint.post, OPERATORS, self.add),
            (blueprint.delete, one, self.remove),
            (blueprint.post, f"{one}/token", self.rotate),
            (blueprint.get, AUDIT, self.audit),
            (blueprint.delete, f"{ENROL}/<phone:phone>", self.erase),
        ):
            route(path)(needs(Role.ADMIN, view))
        blueprint.get(ENROL)(self.phones)
        return blueprint

    def operators(self) -> Response:
        """List all operators."""
        views = (OperatorView(name=one.name, role=one.role) for one in self._orders.accounts.all())
        return bodies.respond(Operators(operators=tuple(views)))

    def add(self) -> Response:
        """Add an operator."""
        wanted = bodies.decode(bodies.read(), NewOperator)
        return bodies.respond(self._orders.add_operator(wanted), 201)

    def remove(self, name: str) -> Response:
        """Remove an operator."""
        self._orders.remove_operator(name)
        return Response(status=204)

    def rotate(self, name: str) -> Response:
        """Give an operator a new token."""
        return bodies.respond(self._orders.rotate(name))

    def audit(self) -> Response:
        """List the newest entries of the audit log, or the newest before entry `before`."""
        before = request.args.get("before")
        if before is not None and not (before.isascii() and before.isdigit() and len(before) < 19):
            raise MalformedMessageError("before: give the number of an entry")
        entries = self._orders.accounts.audit(None if before is None else int(before))
        return bodies.respond(Audit(entries=entries))

    def phones(self) -> Response:
        """Return how many phones there are; every role may read it."""
        enrolled, in_phases = self._erasure.counts()
        return bodies.respond(PhoneCounts(enrolled=enrolled, in_phases=in_phases))

    def erase(self, phone: int) -> Response:
        """Delete everything stored about a phone."""
        if not self._erasure.erase(phone, present_operator().name, "erase phone"):
            raise UnknownPhoneError("no phone has this number")
        return Response(status=204)
