"""Callers of the API in tests: operators, phones that sign, and strangers, over WSGI."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from flask import Flask
from werkzeug.test import TestResponse

from earshot_protocol.api import (
    ANSWER,
    ENROL,
    INVITATIONS,
    JSON,
    MESSAGEPACK,
    PHASES,
    PROBLEM,
    PROBLEM_PREFIX,
    TASK,
    AskTask,
    Enrol,
    Enrolled,
    Invitation,
    Invite,
    Problem,
    StartPhase,
    decode_body,
    encode_body,
)
from earshot_protocol.messages import decode_task
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.signatures import sign
from earshot_protocol.wire import Answer, Task
from earshot_server.api.app import ApiSettings, create_app
from earshot_server.credentials import Credentials
from earshot_server.store.database import Database

_T = TypeVar("_T")


def problem_of(response: TestResponse, status: int, kind: str) -> Problem:
    """The problem that the response must be."""
    assert (response.status_code, response.content_type) == (status, PROBLEM), response.data
    problem = msgspec.json.decode(response.data, type=Problem)
    assert (problem.status, problem.type) == (status, PROBLEM_PREFIX + kind)
    assert problem.title
    assert "Traceback" not in response.text
    return problem


def body_of(response: TestResponse, kind: type[_T], status: int = 200) -> _T:
    """The body that the response must have."""
    assert response.status_code == status, response.data
    return decode_body(response.data, response.content_type, kind)


@dataclass
class Server:
    """A server and its operator."""

    app: Flask
    credentials: Credentials

    @classmethod
    def over(cls, database: Database, folder: Path, **settings: Any) -> Server:
        credentials = Credentials.load_or_create(folder)
        return cls(create_app(ApiSettings(database, credentials, **settings)), credentials)

    @property
    def bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.credentials.operator_token}"}

    def get(self, path: str, **fields: str) -> TestResponse:
        return self.app.test_client().get(path, headers=fields)

    def read(self, path: str, **fields: str) -> TestResponse:
        """As the operator."""
        return self.app.test_client().get(path, headers=self.bearer | fields)

    def order(self, path: str, body: object = None, media: str = JSON) -> TestResponse:
        """As the operator; a body that is bytes goes as it is."""
        data = body if isinstance(body, bytes) else encode_body(body, media) if body else b""
        fields = self.bearer | {"Content-Type": media}
        return self.app.test_client().post(path, headers=fields, data=data)

    def invitation(self, uses: int = 10_000) -> str:
        return body_of(self.order(INVITATIONS, Invite(uses=uses)), Invitation).code

    def start(self, parameters: Parameters, least: int | None = None) -> bytes:
        body = StartPhase(
            parameters=parameters, least_phones=least, gather_seconds=3600.0, anyway=True
        )
        return bytes.fromhex(body_of(self.order(PHASES, body), dict, 201)["phase"])

    def phone(self, code: str | None = None) -> Caller:
        """A phone that has enrolled."""
        caller = Caller(self.app)
        enrolled = body_of(caller.enrol(code or self.invitation()), Enrolled)
        caller.name = enrolled.phone
        return caller


@dataclass
class Caller:
    """A phone, or somebody who would like to be one."""

    app: Flask
    name: str = "new"
    key: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)

    @cached_property
    def public_key(self) -> bytes:
        return self.key.public_key().public_bytes_raw()

    def fields(self, path: str, data: bytes, media: str, skew: float = 0.0) -> dict[str, str]:
        """What signs a request, its content type included."""
        created = int(time.time() + skew)
        return {"Content-Type": media} | sign(self.key, self.name, created, path, media, data)

    def post(
        self, path: str, body: object, media: str = MESSAGEPACK, skew: float = 0.0, **fields: str
    ) -> TestResponse:
        """A signed request; a body that is bytes goes as it is."""
        data = body if isinstance(body, bytes) else encode_body(body, media)
        return self.app.test_client().post(
            path, data=data, headers=self.fields(path, data, media, skew) | fields
        )

    def enrol(self, code: str, media: str = MESSAGEPACK) -> TestResponse:
        return self.post(ENROL, Enrol(public_key=self.public_key, attestation=code), media)

    def task(self, known: tuple[bytes, ...] = ()) -> Task:
        response = self.post(TASK, AskTask(known=known))
        assert response.status_code == 200, response.data
        return decode_task(response.data)

    def answer(self, answer: Answer) -> TestResponse:
        return self.post(ANSWER, answer)
