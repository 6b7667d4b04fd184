"""Phones in browsers: pages of named origins may call what phones call, and no others anything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from playwright.sync_api import Page
from support.api_caller import Server, problem_of
from support.dashboard_browser import browser
from support.dashboard_server import served
from werkzeug.test import TestResponse

from earshot_protocol.api import (
    ANSWER,
    ENROL,
    LEAVE,
    MESSAGEPACK,
    PHASES,
    REFUSAL,
    RESULTS,
    TASK,
    AskTask,
)
from earshot_protocol.errors import InvalidInputError
from earshot_server.origins import read_origin
from earshot_server.processes.settings import Serving
from earshot_server.store.database import Database

PAGE, APP = "https://phone.example.org", "capacitor://localhost"
PHONES = (ENROL, TASK, ANSWER, REFUSAL, LEAVE)
SENT = {"content-digest", "content-type", "signature", "signature-input"}
"""What phones send and a page may not send unasked."""


@pytest.fixture
def server(database: Database, tmp_path: Path) -> Server:
    return Server.over(database, tmp_path, phone_origins=(PAGE, APP))


def preflight(server: Server, path: str, origin: str) -> TestResponse:
    asks = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "signature"}
    return server.app.test_client().options(path, headers={"Origin": origin} | asks)


def said(response: TestResponse) -> dict[str, str]:
    """What is said to browsers, by the end of the field's name."""
    prefix = "Access-Control-"
    return {
        name.removeprefix(prefix): value
        for name, value in response.headers.items()
        if name.startswith(prefix)
    }


@pytest.mark.parametrize("path", PHONES)
@pytest.mark.parametrize("origin", [PAGE, APP])
def test_a_browser_is_told_what_its_page_may_send(server: Server, path: str, origin: str) -> None:
    response = preflight(server, path, origin)
    assert (response.status_code, response.data) == (204, b"")
    answers = said(response)
    allowed = {name.strip().lower() for name in answers.pop("Allow-Headers").split(",")}
    assert allowed == SENT
    assert answers == {
        "Allow-Origin": origin,
        "Allow-Methods": "POST",
        "Expose-Headers": "Retry-After",
        "Max-Age": "7200",
    }
    assert response.headers["Vary"] == "Origin"


@pytest.mark.parametrize(
    "origin", ["https://other.example.org", PAGE + ":8443", PAGE + "/", PAGE.upper(), "null", "*"]
)
@pytest.mark.parametrize("path", PHONES)
def test_no_other_origin_is_told_anything(server: Server, path: str, origin: str) -> None:
    for response in (
        preflight(server, path, origin),
        server.app.test_client().post(path, headers={"Origin": origin}),
        server.app.test_client().post(path),
    ):
        assert said(response) == {}
        assert response.headers["Vary"] == "Origin"  # what a cache keeps is for this origin alone


def test_a_page_reads_what_a_phone_is_told(server: Server) -> None:
    phone = server.phone()
    response = phone.post(TASK, AskTask(), Origin=PAGE)
    assert response.status_code == 200
    assert said(response) == {"Allow-Origin": PAGE, "Expose-Headers": "Retry-After"}


def test_a_page_reads_refusals(database: Database, tmp_path: Path) -> None:
    limits: dict[str, Any] = {"phone_requests_per_minute": 1, "address_requests_per_minute": 6}
    server = Server.over(database, tmp_path, phone_origins=(PAGE,), **limits)
    phone = server.phone()
    for status, kind, body in (
        (400, "malformed", b"\xc1"),
        (429, "rate-limit", b"\x80"),
        (415, "unsupported-media", None),
        (401, "signature", b"\x80"),
        (429, "rate-limit", b"\x80"),  # of the address, before anything else is looked at
    ):
        if body is None:
            response = server.app.test_client().post(TASK, headers={"Origin": PAGE})
        elif status == 401:
            signed = phone.fields(TASK, body, MESSAGEPACK) | {"Origin": PAGE, "Signature": "a"}
            response = server.app.test_client().post(TASK, data=body, headers=signed)
        else:
            response = phone.post(TASK, body, Origin=PAGE)
        problem_of(response, status, kind)
        assert said(response)["Allow-Origin"] == PAGE
    # Whoever is over a limit learns it by the request: a page is not shown a refused preflight.
    for _ in range(20):
        assert preflight(server, TASK, PAGE).status_code == 204


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ENROL),  # the operator's count of phones
        ("GET", TASK),
        ("DELETE", ENROL + "/1"),
        ("GET", PHASES),
        ("POST", PHASES),
        ("OPTIONS", PHASES),
        ("OPTIONS", RESULTS),
        ("OPTIONS", "/"),
        ("GET", RESULTS),
        ("GET", "/"),
        ("POST", "/sign-in"),
        ("GET", "/metrics"),
        ("GET", "/health/ready"),
        ("POST", TASK + "/"),
    ],
)
def test_nothing_but_what_phones_call_is_opened(server: Server, method: str, path: str) -> None:
    response = server.app.test_client().open(path, method=method, headers={"Origin": PAGE})
    assert said(response) == {}
    assert method != "OPTIONS" or response.status_code == 405


def test_no_cookie_counts(server: Server) -> None:
    for response in (preflight(server, TASK, PAGE), server.phone().post(TASK, b"", Origin=PAGE)):
        assert "Allow-Credentials" not in said(response)


def test_without_origins_all_is_as_before(database: Database, tmp_path: Path) -> None:
    server = Server.over(database, tmp_path)
    problem_of(preflight(server, TASK, PAGE), 405, "method")
    response = server.phone().post(TASK, AskTask(), Origin=PAGE)
    assert said(response) == {}
    assert "Vary" not in response.headers


# ------------------------------------------------------------------------------------ a browser

_CALL = """async ([url, fields]) => {
  try {
    const body = new Uint8Array([128]);
    const response = await fetch(url, {method: "POST", headers: fields, body});
    const {status, headers} = response;
    return {status, wait: headers.get("Retry-After"), id: headers.get("X-Request-Id")};
  } catch (error) {
    return {error: error.name};
  }
}"""


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with browser() as running:
        yield running.new_page()


def elsewhere() -> Flask:
    app = Flask("elsewhere", static_folder=None)
    app.add_url_rule("/", "page", lambda: "<!doctype html><title>phone</title>")
    return app


def test_a_real_browser_lets_a_named_page_through_and_no_other(
    database: Database, tmp_path: Path, page: Page
) -> None:
    with served(elsewhere()) as named, served(elsewhere()) as other:
        limits = {"phone_requests_per_minute": 1}
        server = Server.over(database, tmp_path, phone_origins=(named,), **limits)
        phone = server.phone()
        with served(server.app) as address:

            def call(path: str) -> Any:
                fields = phone.fields(path, b"\x80", MESSAGEPACK)
                return page.evaluate(_CALL, [address + path, fields])

            page.goto(named)
            first, second = call(TASK), call(TASK)
            assert (first["status"], second["status"]) == (200, 429)
            assert 1 <= int(second["wait"]) <= 60
            assert second["id"] is None  # nothing else is shown
            assert call(PHASES) == {"error": "TypeError"}
            page.goto(other)
            assert call(TASK) == {"error": "TypeError"}


# -------------------------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    "origin",
    [PAGE, APP, "http://localhost:8080", "http://127.0.0.1", "http://[::1]:9", "https://a:8443"],
)
def test_an_origin_as_browsers_write_it_is_taken(origin: str) -> None:
    assert read_origin(origin) == origin
    Serving(phone_origins=(origin,)).check()


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        ("*", "name each one"),
        ("https://*.example.org", "name each one"),
        ("null", "name each one"),
        (PAGE + "/", "without a path or a slash"),
        (PAGE + "/phone", "without a path"),
        ("https://Phone.example.org", "in lower case"),
        ("phone.example.org", "give its scheme"),
        ("", "give its scheme"),
        ("https://user@example.org", "its host"),
        ("https://münchen.de", "in lower case"),
        (PAGE + "\n", "its host"),
        ("https://example.org:443", "leave :443 out"),
        ("http://localhost:80", "leave :80 out"),
        ("https://example.org:99999", "range"),
        ("http://phone.example.org", "use https"),
        ("file://phone", "have no origin"),
    ],
)
def test_another_origin_is_refused(origin: str, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        read_origin(origin)
    with pytest.raises(InvalidInputError, match="--phone-origin"):
        Serving(phone_origins=(PAGE, origin)).check()


def test_the_document_is_true_of_what_is_sent(server: Server) -> None:
    text = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text("utf-8")
    for words in (*said(preflight(server, TASK, PAGE)), "OPTIONS"):
        assert words in text
    assert json.loads(server.get("/v1/openapi.json").data)["paths"][TASK].keys() == {"post"}
