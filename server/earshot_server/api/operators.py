"""Endpoints for operators: invite phones, start, watch, stop and export phases."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable

from flask import Blueprint, Response, request

from earshot_protocol.api import (
    COHORTS,
    INVITATIONS,
    LARGEST_START,
    PHASES,
    PRIVACY,
    Invite,
    StartPhase,
)
from earshot_protocol.errors import (
    InvalidParametersError,
    MalformedMessageError,
)
from earshot_server.api import bodies
from earshot_server.api.authentication import needs, present_operator
from earshot_server.api.problems import UnknownPhaseError
from earshot_server.api.views import (
    Cohorts,
    PhaseExport,
    Phases,
    PhaseView,
    PrivacySpent,
    Started,
    Stopped,
)
from earshot_server.attestation import InvitationCodes
from earshot_server.credentials import Credentials
from earshot_server.phases.forecast import check_possible, refusals
from earshot_server.records import STOPPED_REASON, PhaseRecord
from earshot_server.store.archive import Archive
from earshot_server.store.database import Database
from earshot_server.store.operators import Accounts, Role
from earshot_server.store.registry import Registry

_PREFIX = re.compile(r"[0-9a-f]{1,32}")
"""Pattern of the first digits of a phase's identifier."""


class OperatorEndpoints:
    """Endpoints for operators.

    Args:
        database: Database that keeps everything.
        credentials: Credentials of the server.
    """

    def __init__(self, database: Database, credentials: Credentials) -> None:
        self._database = database
        self._registry = Registry(database)
        self._archive = Archive(database)
        self._accounts = Accounts(database)
        self._credentials = credentials

    def blueprint(self, authenticate: Callable[[], None]) -> Blueprint:
        """Return the endpoints, to be mounted behind the authentication of callers."""
        blueprint = Blueprint("operators", __name__)
        blueprint.before_request(authenticate)
        blueprint.before_request(bodies.negotiate)
        one = f"{PHASES}/<phase:phase>"
        blueprint.post(INVITATIONS)(needs(Role.OPERATOR, self.invite))
        blueprint.post(PHASES)(needs(Role.OPERATOR, self.start))
        blueprint.get(PHASES)(self.phases)
        blueprint.get(COHORTS)(self.cohorts)
        blueprint.get(PRIVACY)(self.privacy)
        blueprint.get(one)(self.phase)
        blueprint.post(f"{one}/stop")(needs(Role.OPERATOR, self.stop))
        blueprint.get(f"{one}/export")(self.export)
        return blueprint

    def invite(self) -> Response:
        """Sign an invitation code."""
        invite = bodies.decode(bodies.read(), Invite)
        codes, now = InvitationCodes(self._credentials.invitation_key), time.time()
        issued = codes.issue(invite, now)
        named = codes.check(issued.code, b"", now).invitation.hex()
        self._record("invite", named, f"{invite.uses} uses, {invite.days:g} days")
        return bodies.respond(issued)

    def start(self) -> Response:
        """Start a phase: it gathers phones, and the driver does the rest."""
        wanted = bodies.decode(bodies.read(LARGEST_START), StartPhase)
        check_possible(wanted)
        if not wanted.anyway:
            self._check_promising(wanted)
        least = wanted.least()
        parameters = wanted.agreed()
        phase = os.urandom(16)
        until = self._database.now() + wanted.gather_seconds
        with self._database.transaction():
            self._registry.gather(
                phase,
                parameters,
                least,
                until,
                name=wanted.name,
                cohorts=wanted.cohorts,
                choices=wanted.choices,
            )
            self._record(
                "start phase",
                phase.hex(),
                f"{wanted.parameters.kind}, {wanted.parameters.phones} phones",
            )
        return bodies.respond(Started(phase=phase.hex()), 201)

    def _check_promising(self, wanted: StartPhase) -> None:
        """Refuse a phase that default phones refuse, or that no phone may join."""
        reasons = [refusal.reason for refusal in refusals(wanted)]
        known = {cohort.name for cohort in self._archive.cohorts()}
        reasons += [
            f"cohort {name} has no phones; those that have: {', '.join(sorted(known - {''}))}"
            for name in wanted.cohorts
            if name not in known
        ]
        if reasons:
            raise InvalidParametersError(
                f"default phones do not take part: {'; '.join(reasons)}. If yours do, start it "
                "all the same: --anyway on the command line, in a request the field anyway set to "
                "true"
            )

    def phases(self) -> Response:
        """List the newest phases: all, or those whose identifier begins with `prefix`."""
        prefix = request.args.get("prefix")
        if prefix is None:
            records = self._archive.phases()
        elif _PREFIX.fullmatch(prefix):
            records = self._archive.phases_named(prefix)
        else:
            raise MalformedMessageError("prefix: give 1 to 32 hexadecimal digits, in lower case")
        views = tuple(PhaseView.of(record) for record in records)
        return bodies.respond(Phases(phases=views))

    def cohorts(self) -> Response:
        """List the cohorts, and how many phones each has."""
        return bodies.respond(Cohorts(cohorts=self._archive.cohorts()))

    def phase(self, phase: bytes) -> Response:
        """Return one phase."""
        return bodies.respond(PhaseView.of(self._known(phase)))

    def privacy(self) -> Response:
        """Return what phones have spent in all phases."""
        return bodies.respond(PrivacySpent.of(self._archive.phases(None)))

    def export(self, phase: bytes) -> Response:
        """Return everything that is kept of a phase."""
        record = self._known(phase)
        return bodies.respond(PhaseExport(phase=PhaseView.of(record), ending=record.ending))

    def stop(self, phase: bytes) -> Response:
        """Stop a phase without a result; one that is over is returned as it is."""
        self._known(phase)
        with self._database.transaction():
            stopped = self._registry.stop(phase, STOPPED_REASON)
            if stopped:
                self._record("stop phase", phase.hex())
        view = PhaseView.of(self._known(phase))
        return bodies.respond(Stopped(stopped=stopped, phase=view))

    def _known(self, phase: bytes) -> PhaseRecord:
        record = self._archive.phase(phase)
        if record is None:
            raise UnknownPhaseError("no phase has this name")
        return record

    def _record(self, action: str, subject: str, detail: str = "") -> None:
        self._accounts.record(present_operator().name, action, subject, detail)
