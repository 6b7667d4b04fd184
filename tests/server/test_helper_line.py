"""A leader's line to a helper that is hostile, slow, or somebody else: trouble by name, in time."""

from __future__ import annotations

import itertools
import logging
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from support.authority import Authority
from support.listening import PATIENCE
from support.operators import Operators, entries, inputs_of, listed, request, terms
from support.raw_server import DRIPS, Say, ok, read_request, saying
from support.served_helper import ServedHelper, problem

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.two_operators import transport
from earshot_protocol.two_operators.messages import MakeOffer, OfferMade
from earshot_protocol.two_operators.transport import OFFER_PATH
from earshot_server import helper_line
from earshot_server.helper_line import HelperLine, HelperTroubleError

HOUR = 3600.0
MEBIBYTE = bytes(2**20)


@pytest.fixture
def operators() -> Operators:
    return Operators()


@pytest.fixture
def helper(operators: Operators) -> Iterator[ServedHelper]:
    """A helper that answers, at the time of its leader's sums."""
    served = ServedHelper()
    served.identity, served.leaders = operators.identity, frozenset({operators.keys.identity})
    with served.running() as running:
        yield running


def asking(operators: Operators) -> MakeOffer:
    return request(operators.begin())


def trouble(address: str, operators: Operators, timeout: float = PATIENCE) -> HelperTroubleError:
    """What asking there comes to."""
    with (
        HelperLine(address, operators.leader, timeout=timeout) as line,
        pytest.raises(HelperTroubleError) as caught,
    ):
        line.answer(asking(operators))
    assert not caught.value.final
    return caught.value


# ------------------------------------------------------------------------------------------- sizes


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (ok("Content-Length: 100000000"), MEBIBYTE),
        (ok("Transfer-Encoding: chunked"), b"100000\r\n" + MEBIBYTE + b"\r\n"),
        (ok("Connection: close"), MEBIBYTE),
    ],
)
def test_a_body_that_is_too_large_or_endless_is_not_read(
    operators: Operators, head: bytes, piece: bytes
) -> None:
    sent = 0

    def pour(connection: socket.socket) -> None:
        nonlocal sent
        connection.sendall(head)
        for _ in range(100):
            connection.sendall(piece)
            sent += len(piece)

    with saying(pour) as address:
        found = trouble(address, operators)
    assert found.name == "wrong_answer"
    assert sent < 50 * len(piece), "no more than what fits on the way"


# -------------------------------------------------------------------------------------------- times


@pytest.mark.parametrize("say", DRIPS.values(), ids=DRIPS)
def test_what_never_ends_is_cut_off(
    operators: Operators, monkeypatch: pytest.MonkeyPatch, say: Say
) -> None:
    monkeypatch.setattr(helper_line, "_FIRST", 1.0)
    with saying(say) as address:
        found = trouble(address, operators)
    assert found.name == "unreachable"
    assert "takes too long" in str(found)


def test_who_says_nothing_is_not_waited_for_for_ever(operators: Operators) -> None:
    heard = threading.Event()

    def nothing(connection: socket.socket) -> None:
        assert heard.wait(PATIENCE)

    with saying(nothing) as address:
        assert trouble(address, operators, timeout=0.2).name == "unreachable"
        heard.set()


# ---------------------------------------------------------------------------------------- elsewhere


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(operators: Operators, helper: ServedHelper, status: int) -> None:
    def elsewhere(connection: socket.socket) -> None:
        line = f"HTTP/1.1 {status} Elsewhere\r\nLocation: {helper.address}{OFFER_PATH}\r\n"
        connection.sendall(f"{line}Content-Length: 0\r\n\r\n".encode())

    with saying(elsewhere) as address:
        assert trouble(address, operators).name == "unavailable"
    assert helper.asked == []


def test_who_answers_everything_twice_is_waited_for_by_name(
    operators: Operators, helper: ServedHelper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second response to one request is taken for the response to the next, and is none."""
    monkeypatch.setattr(transport, "LARGEST_PART", 96 * 5)
    leader, _ = operators.collected(inputs_of(range(20)))
    task = listed(leader)
    assert len(entries(task)) == 20
    none = b"HTTP/1.1 204 No Content\r\n\r\n"

    def twice(connection: socket.socket) -> None:
        connection.sendall(none * 2)
        for _ in range(4):
            read_request(connection)
            connection.sendall(none * 2)

    with saying(twice) as address, HelperLine(address, operators.leader, timeout=PATIENCE) as line:
        with pytest.raises(HelperTroubleError) as caught:
            line.answer(task)
        assert not caught.value.final
        assert caught.value.name == "unavailable"


# ------------------------------------------------------------------------------------------- clocks


@pytest.mark.parametrize("skew", [-HOUR, HOUR])
def test_a_leader_whose_clock_is_an_hour_off_signs_by_its_helper_s(
    operators: Operators, helper: ServedHelper, skew: float, caplog: pytest.LogCaptureFixture
) -> None:
    def off() -> float:
        return time.time() + skew

    with HelperLine(helper.address, operators.leader, clock=off) as line:
        for _ in range(2):
            assert isinstance(line.answer(asking(operators)), OfferMade)
    assert len(helper.asked) == 3, "it has learned it once"
    (said,) = [each for each in caplog.records if each.name == helper_line.__name__]
    assert said.levelno == logging.WARNING
    assert said.args == (pytest.approx(-skew, abs=60),)


def test_a_helper_whose_clock_runs_wild_is_waited_for_by_name(
    operators: Operators, helper: ServedHelper
) -> None:
    times = itertools.count(1e9, HOUR)
    helper.clock = lambda: next(times)
    assert trouble(helper.address, operators).name == "bad_signature"
    assert len(helper.asked) == 2, "it signs once more, and no more"


@pytest.mark.parametrize("now", [0.0, 999_999_999_999.9])
def test_no_time_that_a_helper_names_is_a_mistake_of_ours(
    operators: Operators, helper: ServedHelper, now: float
) -> None:
    helper.trouble = lambda path: problem("bad_signature", 401, now=now)
    assert trouble(helper.address, operators).name == "bad_signature"


# ---------------------------------------------------------------------------------------------- TLS


def behind_tls(helper: ServedHelper, context: ssl.SSLContext) -> str:
    """Serve it with a certificate from now on; its address."""
    server = helper._server
    server.socket = context.wrap_socket(server.socket, server_side=True)
    return f"https://127.0.0.1:{server.server_address[1]}"


def test_a_helper_with_a_certificate_that_the_system_trusts_is_asked(
    operators: Operators, helper: ServedHelper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    address = behind_tls(helper, authority.serving("127.0.0.1"))
    with HelperLine(address, operators.leader, timeout=PATIENCE) as line:
        assert isinstance(line.answer(asking(operators)), OfferMade)


@pytest.mark.parametrize(
    ("host", "days", "trusted"),
    [("127.0.0.1", 1, False), ("127.0.0.2", 1, True), ("127.0.0.1", -1, True)],
    ids=["another authority", "another address", "expired"],
)
def test_nothing_is_sent_to_who_has_no_such_certificate(
    operators: Operators,
    helper: ServedHelper,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    host: str,
    days: int,
    trusted: bool,
) -> None:
    authority, other = Authority(tmp_path), Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    signer = authority if trusted else other
    found = trouble(behind_tls(helper, signer.serving(host, days)), operators)
    assert found.name == "unreachable"
    assert "CERTIFICATE_VERIFY_FAILED" in str(found)
    assert helper.asked == []


def test_what_never_ends_is_cut_off_behind_tls(
    operators: Operators, helper: ServedHelper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    monkeypatch.setattr(helper_line, "_FIRST", 1.0)
    with saying(DRIPS["body"], authority.serving("127.0.0.1")) as address:
        found = trouble(address, operators)
    assert found.name == "unreachable"
    assert "takes too long" in str(found)


def test_plain_http_leads_to_this_machine_alone(operators: Operators) -> None:
    with pytest.raises(InvalidInputError, match="use https"):
        HelperLine("http://helper.example", operators.leader)


def test_a_list_s_patience_grows_with_it() -> None:
    leader, _ = Operators().collected(inputs_of(range(20)), parameters=terms())
    task = listed(leader)
    long = msgspec.structs.replace(task, reports=task.reports * 1000)
    assert helper_line.patience(long) > helper_line.patience(task) > 60.0
