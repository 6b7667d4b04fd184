"""Every error is a problem that helps, and tells nobody what is none of their business."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import msgspec
import pytest
from support.api_caller import Caller, Server, problem_of
from support.played_phase import PARAMETERS
from werkzeug.test import create_environ, run_wsgi_app

from earshot_protocol.api import (
    ANSWER,
    ENROL,
    INVITATIONS,
    JSON,
    LARGEST_ENROLMENT,
    LARGEST_SMALL_BODY,
    LARGEST_START,
    MESSAGEPACK,
    PHASES,
    RESULTS,
    TASK,
    AskTask,
    encode_body,
)
from earshot_protocol.errors import LocalError, MalformedMessageError
from earshot_server.processes import logs
from earshot_server.store.archive import Archive
from earshot_server.store.database import Database, DatabaseUnavailableError
from earshot_server.store.registry import Registry

SECRET = "password=hunter2 /srv/secret.py"  # noqa: S105 - what must not get out


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """All that this process logs, as the server writes it."""
    root = logging.getLogger()
    before, level, stream = root.handlers[:], root.level, io.StringIO()
    logs.configure("DEBUG", stream)
    yield stream
    root.handlers[:] = before
    root.setLevel(level)


# ---------------------------------------------------------------------------- what was wrong


@pytest.mark.parametrize("path", ["/nothing", "/v1", "/v1/results/", "//v1/results", "/v1/./task"])
def test_what_is_not_there_is_not_found_nor_redirected(server: Server, path: str) -> None:
    problem_of(server.get(path), 404, "unknown-path")


def test_a_method_that_is_not_taken_names_those_that_are(server: Server) -> None:
    for method in ("GET", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"):
        response = server.app.test_client().open(TASK, method=method)
        problem_of(response, 405, "method")
        assert response.headers["Allow"] == "POST"


@pytest.mark.parametrize("path", [ENROL, TASK, ANSWER, INVITATIONS, PHASES])
@pytest.mark.parametrize("media", ["", "text/plain", "application/x-www-form-urlencoded", "json"])
def test_a_body_of_another_format_is_refused(server: Server, path: str, media: str) -> None:
    problem = problem_of(server.order(path, b"{}", media), 415, "unsupported-media")
    assert MESSAGEPACK in problem.detail
    assert JSON in problem.detail


def test_a_compressed_body_is_refused(server: Server) -> None:
    response = server.phone().post(TASK, b"{}", JSON, **{"Content-Encoding": "gzip"})
    problem_of(response, 415, "unsupported-media")


@pytest.mark.parametrize("path", [ENROL, TASK, INVITATIONS, PHASES])
def test_small_bodies_are_small(server: Server, path: str) -> None:
    limits = {ENROL: LARGEST_ENROLMENT, PHASES: LARGEST_START}
    limit = limits.get(path, LARGEST_SMALL_BODY)
    problem_of(server.order(path, b" " * (limit + 1), JSON), 413, "too-large")
    assert server.order(path, b" " * limit, JSON).status_code != 413


class Endless(io.RawIOBase):
    """The body of somebody who does not stop."""

    given = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        self.given += len(buffer)
        return len(buffer)


def given_of_endless(server: Server, path: str, fields: dict[str, str], wanted: str) -> int:
    """How many bytes of an endless body are read before the answer that must come."""
    body = Endless()
    environ = create_environ(path, method="POST", headers={"Content-Type": JSON} | fields)
    environ |= {"wsgi.input": body, "wsgi.input_terminated": True}
    _, status, _ = run_wsgi_app(server.app, environ)
    assert status.startswith(wanted)
    return body.given


def test_a_body_of_unknown_length_is_read_up_to_the_limit(server: Server) -> None:
    given = given_of_endless(server, INVITATIONS, server.bearer, "413")
    assert given <= 2 * LARGEST_SMALL_BODY
    assert given_of_endless(server, ENROL, {}, "413") <= 2 * LARGEST_ENROLMENT


@pytest.mark.parametrize("path", [TASK, ANSWER, INVITATIONS, PHASES])
def test_of_somebody_who_is_not_known_no_body_is_read(server: Server, path: str) -> None:
    """Whom it would let wait, it knows from the fields alone."""
    assert given_of_endless(server, path, {}, "401") == 0
    stranger = Caller(server.app, name=server.phone().name)
    forged = stranger.fields(path, b"{}", JSON) | {"Authorization": "Bearer wrong"}
    assert given_of_endless(server, path, forged, "401") == 0


def test_a_response_that_cannot_be_given_changes_nothing(server: Server) -> None:
    phone = Caller(server.app)
    code = server.invitation(uses=1)
    response = phone.post(
        ENROL,
        msgspec.json.encode({"public_key": phone.public_key, "attestation": code}),
        JSON,
        Accept="text/html",
    )
    problem_of(response, 406, "not-acceptable")
    assert server.phone(code).name  # the invitation was not used


@pytest.mark.parametrize(
    ("accept", "media"),
    [
        ("*/*", JSON),
        ("text/html,*/*;q=0.1", JSON),
        ("application/*", JSON),
        (f"{JSON};q=0.1, {MESSAGEPACK}", MESSAGEPACK),
        ("", JSON),
        ("nonsense,,;q=x", None),
    ],
)
def test_the_format_is_negotiated(server: Server, accept: str, media: str | None) -> None:
    response = server.get(RESULTS, Accept=accept)
    if media is None:
        problem_of(response, 406, "not-acceptable")
    else:
        assert (response.status_code, response.content_type) == (200, media)


@pytest.mark.parametrize("media", [JSON, MESSAGEPACK])
@pytest.mark.parametrize(
    "wrong",
    [
        b"",
        b"\xff",
        b"null",
        b"[]",
        b"{",
        encode_body({"known": [b"short"]}, JSON),
        encode_body({"known": [b"short"]}, MESSAGEPACK),
        encode_body({"unknown": 1}, JSON),
        encode_body({"unknown": 1}, MESSAGEPACK),
        b"[" * 60_000,
        b"\x91" * 60_000,
        b"\xdf\xff\xff\xff\xff",
        b'{"known": "\\ud800"}',
    ],
)
def test_a_body_that_is_not_as_expected_is_malformed(
    server: Server, media: str, wrong: bytes
) -> None:
    problem = problem_of(server.phone().post(TASK, wrong, media), 400, "malformed")
    assert problem.detail.startswith("the body is not as expected")


# ------------------------------------------------------------------------- what is our mistake


def test_an_unexpected_error_says_nothing_but_where_to_look(
    server: Server, monkeypatch: pytest.MonkeyPatch, written: io.StringIO
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError(SECRET)

    monkeypatch.setattr(Archive, "phases", broken)
    response = server.get(RESULTS)
    problem = problem_of(response, 500, "internal")
    assert "hunter2" not in response.text
    assert "secret.py" not in response.text
    assert response.headers["X-Request-Id"] in problem.detail
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    (error,) = [line for line in lines if line["level"] == "ERROR"]
    assert error["request"] == response.headers["X-Request-Id"]
    assert "RuntimeError" in error["exc_info"]


def test_a_local_error_that_nobody_foresaw_is_internal_too(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise LocalError(SECRET)

    monkeypatch.setattr(Archive, "phases", broken)
    response = server.get(RESULTS)
    problem_of(response, 500, "internal")
    assert "hunter2" not in response.text


def test_while_the_database_is_away_callers_are_told_to_come_again(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    phone = server.phone()

    def away(*_: object) -> None:
        raise DatabaseUnavailableError(SECRET)

    with monkeypatch.context() as outage:
        for kind, name in (
            (Registry, "public_key"),
            (Archive, "phases"),
            (Database, "check"),
        ):
            outage.setattr(kind, name, away)
        for response in (
            phone.post(TASK, AskTask()),
            server.read(PHASES),
            server.get("/health/ready"),
        ):
            problem_of(response, 503, "database")
            assert response.headers["Retry-After"] == "5"
            assert "hunter2" not in response.text
        assert server.get("/health/live").status_code == 200
    assert server.get("/health/ready").get_json() == {"status": "ready"}
    assert phone.post(TASK, AskTask()).status_code == 200


def test_a_subclass_of_an_error_is_the_same_problem_as_its_base(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    class SpecialError(MalformedMessageError):
        pass

    def wrong(*_: object) -> None:
        raise SpecialError("special")

    monkeypatch.setattr(Archive, "phases", wrong)
    assert problem_of(server.get(RESULTS), 400, "malformed").detail == "special"


# ------------------------------------------------------------------------ headers and logs


@pytest.mark.parametrize("path", ["/health/live", RESULTS, PHASES, TASK, "/nothing", "/"])
def test_every_response_protects_itself(server: Server, path: str) -> None:
    headers = server.get(path).headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"
    # A form of the dashboard has to say where it is from.
    assert headers["Referrer-Policy"] == ("same-origin" if path == "/" else "no-referrer")
    assert "'unsafe-eval'" not in headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert "Strict-Transport-Security" not in headers
    expected = "public, max-age=60" if path == RESULTS else "no-store"
    assert headers["Cache-Control"] == expected


def test_what_a_phone_is_told_is_kept_nowhere(server: Server) -> None:
    phone = server.phone()
    assert phone.post(TASK, AskTask()).headers["Cache-Control"] == "no-store"
    assert phone.enrol(server.invitation()).headers["Cache-Control"] == "no-store"


def test_over_tls_callers_are_told_to_stay_there(server: Server) -> None:
    response = server.app.test_client().get("/health/live", base_url="https://localhost")
    assert response.headers["Strict-Transport-Security"] == "max-age=31536000"


def test_the_log_names_requests_and_phones_and_no_secret(
    server: Server, written: io.StringIO
) -> None:
    code = server.invitation()
    phone = server.phone(code)
    asked = phone.post(TASK, AskTask())
    fields = phone.fields(TASK, b"{}", JSON)
    server.app.test_client().post(TASK, data=b'{"a":1}', headers=fields)
    phone.post(TASK, b'{"private": "word"}', JSON)
    server.read(PHASES)
    server.get(PHASES, Authorization="Bearer wrong-token")
    server.get(f"/{code}")
    server.order(PHASES, {"parameters": msgspec.to_builtins(PARAMETERS)})

    text = written.getvalue()
    lines = [json.loads(line) for line in text.splitlines()]
    by_request = {line["request"]: line for line in lines if "request" in line}
    line = by_request[asked.headers["X-Request-Id"]]
    assert (line["phone"], line["endpoint"], line["status"]) == (int(phone.name), TASK, 200)
    assert line["milliseconds"] > 0
    assert {each.get("problem") for each in lines} >= {"signature", "malformed", "operator", None}
    for secret in (
        server.credentials.operator_token,
        code,
        "wrong-token",
        fields["Signature"],
        fields["Content-Digest"],
        "private",
        "word",
        "127.0.0.1",
    ):
        assert secret not in text
