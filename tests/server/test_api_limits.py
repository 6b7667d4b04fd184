"""Rates: nobody keeps others from being served."""

from __future__ import annotations

import base64
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.api_caller import Caller, Server, problem_of
from werkzeug.test import TestResponse

from earshot_protocol.api import PHASES, RESULTS, TASK, AskTask
from earshot_server.api.limits import FAILURES, RateLimits
from earshot_server.api.problems import RateLimitError
from earshot_server.store.database import Database


def test_a_phone_that_asks_too_often_is_told_when_to_come_again(
    database: Database, tmp_path: Path
) -> None:
    server = Server.over(database, tmp_path, phone_requests_per_minute=3)
    busy, other = server.phone(), server.phone()
    responses = [busy.post(TASK, AskTask()) for _ in range(5)]
    assert [response.status_code for response in responses] == [200, 200, 200, 429, 429]
    problem = problem_of(responses[-1], 429, "rate-limit")
    assert 1 <= int(responses[-1].headers["Retry-After"]) <= 60
    assert responses[-1].headers["Retry-After"] in problem.detail
    assert other.post(TASK, AskTask()).status_code == 200


def test_a_stranger_cannot_use_up_a_phones_rate(database: Database, tmp_path: Path) -> None:
    server = Server.over(database, tmp_path, phone_requests_per_minute=3)
    phone = server.phone()
    thief = Caller(server.app, name=phone.name)
    for _ in range(10):
        problem_of(thief.post(TASK, AskTask()), 401, "signature")
    assert phone.post(TASK, AskTask()).status_code == 200


def basic(password: str) -> str:
    return "Basic " + base64.b64encode(f"operator:{password}".encode()).decode()


def words(response: TestResponse) -> str:
    """What is said, but for how many seconds to wait."""
    return re.sub(r"\d+ seconds", "", response.text)


@pytest.mark.parametrize(("path", "scheme"), [("/", "Basic"), (PHASES, "Bearer")])
def test_who_guesses_the_operators_token_is_soon_refused_whatever_comes_next(
    database: Database, tmp_path: Path, path: str, scheme: str
) -> None:
    server = Server.over(database, tmp_path)

    def ask(token: str, address: str = "192.0.2.1") -> TestResponse:
        given = basic(token) if scheme == "Basic" else f"Bearer {token}"
        return server.app.test_client().get(
            path, headers={"Authorization": given}, environ_overrides={"REMOTE_ADDR": address}
        )

    right = server.credentials.operator_token
    for _ in range(300):  # a browser asks without a password first, and is not counted
        problem_of(asked_from(server, "192.0.2.1", path), 401, "operator")
    guesses = [ask(f"wrong-{number}") for number in range(300)]
    assert [guess.status_code for guess in guesses] == [401] * FAILURES + [429] * (300 - FAILURES)
    refused = ask(right)
    problem_of(refused, 429, "rate-limit")
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert words(refused) == words(ask("wrong"))  # it tells nothing
    assert ask(right, "192.0.2.2").status_code == 200


def asked_from(server: Server, address: str, path: str = RESULTS, **fields: str) -> TestResponse:
    return server.app.test_client().get(
        path, headers=fields, environ_overrides={"REMOTE_ADDR": address}
    )


def test_an_address_that_asks_too_often_is_refused_and_others_are_not(
    database: Database, tmp_path: Path
) -> None:
    server = Server.over(database, tmp_path, address_requests_per_minute=4)
    statuses = [asked_from(server, "192.0.2.1").status_code for _ in range(9)]
    assert statuses == [200] * 4 + [429] * 5
    assert asked_from(server, "192.0.2.2").status_code == 200
    # Health is asked by load balancers, which must not take us for dead.
    for _ in range(9):
        response = server.app.test_client().get(
            "/health/ready", environ_overrides={"REMOTE_ADDR": "192.0.2.1"}
        )
        assert response.status_code == 200


def test_who_is_behind_a_proxy_is_believed_from_that_proxy_alone(
    database: Database, tmp_path: Path
) -> None:
    direct = Server.over(database, tmp_path, address_requests_per_minute=4)
    forged = {
        asked_from(direct, "192.0.2.1", **{"X-Forwarded-For": f"198.51.100.{i}"}).status_code
        for i in range(9)
    }
    assert forged == {200, 429}
    behind = Server.over(database, tmp_path, address_requests_per_minute=4, proxies=1)
    honest = {
        asked_from(behind, "192.0.2.1", **{"X-Forwarded-For": f"198.51.100.{i}"}).status_code
        for i in range(9)
    }
    assert honest == {200}


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def refused(ask: Callable[[], None]) -> bool:
    try:
        ask()
    except RateLimitError:
        return True
    return False


def test_a_window_is_a_minute_from_its_first_request() -> None:
    clock = Clock()
    limits = RateLimits(phone=2, address=9, clock=clock)
    said = []
    # At 0 and 30 s it is served, at 59 s not, and at 60 s a new window begins.
    for clock.now in (1000.0, 1030.0, 1059.0, 1059.5, 1060.0, 1119.0, 1119.5, 1120.0):
        said.append(refused(lambda: limits.count_phone(7)))
    assert said == [False, False, True, True, False, False, True, False]
    limits.count_phone(7)
    with pytest.raises(RateLimitError, match="60 seconds"):
        limits.count_phone(7)


def test_wrong_tokens_are_forgotten_after_a_minute() -> None:
    clock = Clock()
    limits = RateLimits(phone=9, address=9, failures=2, clock=clock)
    for _ in range(2):
        limits.check_failures("192.0.2.1")
        limits.count_failure("192.0.2.1")
    assert refused(lambda: limits.check_failures("192.0.2.1"))
    limits.check_failures("192.0.2.2")
    clock.now += 60
    limits.check_failures("192.0.2.1")


def test_who_came_once_is_not_kept_for_ever() -> None:
    clock = Clock()
    limits = RateLimits(phone=9, address=9, clock=clock)
    for phone in range(1000):
        limits.count_phone(phone)
    clock.now += 30
    limits.count_phone(5000)
    clock.now += 31
    limits.count_phone(6000)
    assert set(limits._windows) == {("phone", "5000"), ("phone", "6000")}


def test_threads_that_count_at_once_lose_nothing_and_raise_nothing() -> None:
    limits = RateLimits(phone=10**9, address=10**9)
    barrier = threading.Barrier(8)

    def count(own: int) -> None:
        barrier.wait()
        for number in range(500):
            limits.count_phone(3)
            limits.count_phone(1000 * own + number)

    with ThreadPoolExecutor(8) as threads:
        for done in [threads.submit(count, own) for own in range(1, 9)]:
            done.result()
    counts = {key: count for key, (_, count) in limits._windows.items()}
    assert counts.pop(("phone", "3")) == 8 * 500
    assert len(counts) == 8 * 500
    assert set(counts.values()) == {1}


def test_one_subscriber_has_many_addresses_of_ipv6() -> None:
    limits = RateLimits(phone=9, address=2)

    def asks(address: str) -> bool:
        return refused(lambda: limits.count_address(address))

    answers = [asks(f"2001:db8:1:1::{i:x}") for i in range(5)]
    assert answers == [False, False, True, True, True]
    assert not asks("2001:db8:1:2::1")
    assert not asks("::ffff:192.0.2.1")
    assert not asks("::ffff:192.0.2.2")


@pytest.mark.parametrize("address", [None, "", "unix:", "nonsense", "fe80::1%eth0"])
def test_an_address_of_no_known_form_is_an_address(address: str | None) -> None:
    limits = RateLimits(phone=9, address=1)

    def ask_often() -> None:
        for _ in range(3):
            limits.count_address(address)

    with pytest.raises(RateLimitError, match="one address"):
        ask_often()
