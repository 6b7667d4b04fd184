"""Endpoints for phones: enrol, ask for a task, answer, refuse, leave.

A phone is identified only by its signature. Its index within a phase comes from the registry, never
from the request, so that it cannot read another phone's tasks or answer for another phone.
"""

from __future__ import annotations

import time

from flask import Blueprint, Response

from earshot_protocol.api import (
    ANSWER,
    ENROL,
    LARGEST_ENROLMENT,
    LARGEST_REFUSAL,
    LARGEST_SMALL_BODY,
    LEAVE,
    REFUSAL,
    TASK,
    AskTask,
    Enrol,
    Enrolled,
    Leave,
    Refuse,
)
from earshot_protocol.errors import InvalidInputError, UnexpectedMessageError, WrongStateError
from earshot_protocol.messages import AnyAnswer, Wait
from earshot_protocol.wire import LARGEST_ANSWER_BYTES, Answer, Task
from earshot_server.api import bodies
from earshot_server.api.authentication import (
    authenticate_new_phone,
    authenticate_phone,
    read_signed,
)
from earshot_server.api.limits import RateLimits
from earshot_server.attestation import Attestation
from earshot_server.phases.coordinator import Coordinator
from earshot_server.phases.present import VISITS_PER_STEP
from earshot_server.records import PhaseRecord
from earshot_server.store.archive import Archive
from earshot_server.store.database import Database
from earshot_server.store.erasure import Erasure
from earshot_server.store.operators import PHONE
from earshot_server.store.postgres import PostgresPhaseStore
from earshot_server.store.registry import Registry


class Phones:
    """Endpoints for phones.

    Args:
        database: Database that keeps everything.
        attestation: Check that decides who may enrol.
        limits: Limits of requests per phone.
        idle_seconds: Seconds after which a phone without a task asks again.
    """

    def __init__(
        self, database: Database, attestation: Attestation, limits: RateLimits, idle_seconds: float
    ) -> None:
        self._registry = Registry(database)
        self._store = PostgresPhaseStore(database)
        self._archive = Archive(database)
        self._erasure = Erasure(database)
        self._attestation = attestation
        self._limits = limits
        self._idle = Wait(seconds=idle_seconds)

    def blueprint(self) -> Blueprint:
        """Return the endpoints."""
        blueprint = Blueprint("phones", __name__)
        blueprint.before_request(bodies.negotiate)
        blueprint.post(ENROL)(self.enrol)
        blueprint.post(TASK)(self.task)
        blueprint.post(ANSWER)(self.answer)
        blueprint.post(REFUSAL)(self.refuse)
        blueprint.post(LEAVE)(self.leave)
        return blueprint

    def enrol(self) -> Response:
        """Enrol a phone under the key with which it signed."""
        body = bodies.read(LARGEST_ENROLMENT)  # it contains the key that signed it
        enrol = bodies.decode(body, Enrol)
        authenticate_new_phone(enrol.public_key, body)
        admission = self._attestation.check(enrol.attestation, enrol.public_key, time.time())
        phone = self._registry.enrol(
            enrol.public_key,
            admission.invitation,
            admission.uses,
            admission.cohort,
            listed=admission.listed,
        )
        return bodies.respond(Enrolled(phone=str(phone)))

    def task(self) -> Response:
        """Return a phone's present task."""
        phone, body = self._signed(LARGEST_SMALL_BODY)
        return bodies.respond(self._task_for(phone, bodies.decode(body, AskTask)))

    def answer(self) -> Response:
        """Accept a phone's answer; it is committed before the response is sent."""
        phone, body = self._signed(LARGEST_ANSWER_BYTES)
        answer: Answer = bodies.decode(body, AnyAnswer)
        member = self._registry.standing(phone).member
        if member is None:
            raise UnexpectedMessageError("this phone takes part in no phase")
        phase, index = member
        try:
            Coordinator(self._store, None, phase).accept(index, answer)
        except InvalidInputError as error:
            raise UnexpectedMessageError("this phone's phase has not begun") from error
        return Response(status=204)

    def refuse(self) -> Response:
        """Count a phone's refusal; repeating it changes nothing."""
        phone, body = self._signed(LARGEST_REFUSAL)
        refusal = bodies.decode(body, Refuse)
        self._registry.refuse(refusal.phase, phone, refusal.rule)
        return Response(status=204)

    def leave(self) -> Response:
        """Delete everything about a phone; a repeated request is refused, as its key is unknown."""
        phone, body = self._signed(LARGEST_SMALL_BODY)
        bodies.decode(body, Leave)
        self._erasure.erase(phone, PHONE, "leave")
        return Response(status=204)

    def _signed(self, limit: int) -> tuple[int, bytes]:
        """Return the sender of the present request and its body.

        The signature is verified before the body is awaited, so that only known phones may be slow.
        """
        bodies.check_fields(limit)
        phone = authenticate_phone(self._registry.public_key)
        if not bodies.is_second_look():
            self._limits.count_phone(phone)
        return phone, read_signed(limit)

    def _task_for(self, phone: int, ask: AskTask) -> Task:
        standing = self._registry.standing(phone, ask.known)
        if standing.member is not None:
            return self._member_task(*standing.member)
        if standing.news is not None:
            return self._record(standing.news).ending or self._idle
        if standing.gathering is not None:
            self._registry.join(standing.gathering, phone)
            return self._gathering_task(standing.gathering)
        return self._idle

    def _member_task(self, phase: bytes, index: int) -> Task:
        try:
            return Coordinator(self._store, None, phase).task_for(index)
        except InvalidInputError:
            return self._gathering_task(phase)

    def _gathering_task(self, phase: bytes) -> Task:
        """Return a wait as short as within a step, so that phones do not miss the first one."""
        record = self._record(phase)
        return Wait(seconds=record.parameters.step_seconds / VISITS_PER_STEP)

    def _record(self, phase: bytes) -> PhaseRecord:
        record = self._archive.phase(phase)
        if record is None:
            raise WrongStateError(f"phase {phase.hex()} is in the registry but not in the archive")
        return record
