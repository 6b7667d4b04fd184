"""Endpoints for operators: invite phones, start, watch, stop and export phases and campaigns."""

from __future__ import annotations

import re
from collections.abc import Callable

from flask import Blueprint, Response, request

from earshot_protocol.api import (
    CAMPAIGNS,
    COHORTS,
    INVITATIONS,
    LARGEST_START,
    PHASES,
    PRIVACY,
    TWO_OPERATORS,
    Invite,
    StartPhase,
)
from earshot_protocol.errors import MalformedMessageError
from earshot_server.api import bodies
from earshot_server.api.authentication import needs
from earshot_server.api.orders import Orders
from earshot_server.api.views import (
    Cohorts,
    Invitations,
    PhaseExport,
    Phases,
    PhaseView,
    PrivacySpent,
    StartCampaign,
    Started,
)
from earshot_server.store.operators import Role

_PREFIX = re.compile(r"[0-9a-f]{1,32}")
"""Pattern of the first digits of a phase's identifier."""


class OperatorEndpoints:
    """Endpoints for operators.

    Args:
        orders: Orders that operators may give.
    """

    def __init__(self, orders: Orders) -> None:
        self._orders = orders

    def blueprint(self, authenticate: Callable[[], None]) -> Blueprint:
        """Return the endpoints; `authenticate` runs before each."""
        blueprint = Blueprint("operators", __name__)
        blueprint.before_request(authenticate)
        blueprint.before_request(bodies.negotiate)
        one = f"{PHASES}/<phase:phase>"
        blueprint.post(INVITATIONS)(needs(Role.OPERATOR, self.invite))
        blueprint.get(INVITATIONS)(self.invitations)
        blueprint.delete(f"{INVITATIONS}/<invitation:name>")(needs(Role.OPERATOR, self.revoke))
        blueprint.post(PHASES)(needs(Role.OPERATOR, self.start))
        blueprint.get(PHASES)(self.phases)
        blueprint.get(COHORTS)(self.cohorts)
        blueprint.get(PRIVACY)(self.privacy)
        blueprint.get(TWO_OPERATORS)(self.two_operators)
        blueprint.get(one)(self.phase)
        blueprint.post(f"{one}/begin")(needs(Role.OPERATOR, self.begin))
        blueprint.post(f"{one}/stop")(needs(Role.OPERATOR, self.stop))
        blueprint.get(f"{one}/export")(self.export)
        campaign = f"{CAMPAIGNS}/<campaign:digest>"
        blueprint.post(CAMPAIGNS)(needs(Role.OPERATOR, self.start_campaign))
        blueprint.get(CAMPAIGNS)(self.campaigns)
        blueprint.get(campaign)(self.campaign)
        blueprint.post(f"{campaign}/stop")(needs(Role.OPERATOR, self.stop_campaign))
        blueprint.post(f"{campaign}/resume")(needs(Role.OPERATOR, self.resume_campaign))
        return blueprint

    def invite(self) -> Response:
        """Sign an invitation code."""
        return bodies.respond(self._orders.invite(bodies.decode(bodies.read(), Invite)))

    def invitations(self) -> Response:
        """List the newest invitations, without their codes."""
        return bodies.respond(Invitations(invitations=self._orders.invitations.all()))

    def revoke(self, name: str) -> Response:
        """Revoke an invitation."""
        self._orders.revoke(name)
        return Response(status=204)

    def start(self) -> Response:
        """Start a phase: it gathers phones, then the driver runs it."""
        wanted = bodies.decode(bodies.read(LARGEST_START), StartPhase)
        return bodies.respond(Started(phase=self._orders.start(wanted).hex()), 201)

    def phases(self) -> Response:
        """List the newest phases: all, or those whose identifier begins with `prefix`."""
        prefix = request.args.get("prefix")
        if prefix is None:
            records = self._orders.archive.phases()
        elif _PREFIX.fullmatch(prefix):
            records = self._orders.archive.phases_named(prefix)
        else:
            raise MalformedMessageError("prefix: give 1 to 32 hexadecimal digits, in lower case")
        views = tuple(PhaseView.of(record) for record in records)
        return bodies.respond(Phases(phases=views))

    def cohorts(self) -> Response:
        """List the cohorts, and how many phones each has."""
        return bodies.respond(Cohorts(cohorts=self._orders.archive.cohorts()))

    def phase(self, phase: bytes) -> Response:
        """Return one phase."""
        return bodies.respond(PhaseView.of(self._orders.known(phase)))

    def privacy(self) -> Response:
        """Return the privacy that phones have spent in all phases."""
        return bodies.respond(PrivacySpent.of(self._orders.archive.phases(None)))

    def two_operators(self) -> Response:
        """Return the public keys of the two operators of sums."""
        return bodies.respond(self._orders.two_operators)

    def export(self, phase: bytes) -> Response:
        """Return everything stored about a phase."""
        record = self._orders.known(phase)
        return bodies.respond(PhaseExport(phase=PhaseView.of(record), ending=record.ending))

    def begin(self, phase: bytes) -> Response:
        """Begin a phase with the phones that have joined."""
        return bodies.respond(self._orders.begin(phase))

    def stop(self, phase: bytes) -> Response:
        """Stop a phase without a result; one that is over is returned as it is."""
        return bodies.respond(self._orders.stop(phase))

    def start_campaign(self) -> Response:
        """Start a campaign: the driver opens its phases."""
        wanted = bodies.decode(bodies.read(LARGEST_START), StartCampaign)
        return bodies.respond(self._orders.start_campaign(wanted), 201)

    def campaigns(self) -> Response:
        """List campaigns."""
        return bodies.respond(self._orders.campaigns())

    def campaign(self, digest: bytes) -> Response:
        """Return a campaign, its plan, and what became of its phases."""
        return bodies.respond(self._orders.campaign(digest))

    def stop_campaign(self, digest: bytes) -> Response:
        """Stop a campaign for good."""
        return bodies.respond(self._orders.stop_campaign(digest))

    def resume_campaign(self, digest: bytes) -> Response:
        """Let a campaign go on that was paused."""
        return bodies.respond(self._orders.resume_campaign(digest))
