"""Responses that are cut, contradict themselves or are somebody else's: one named error each."""

from __future__ import annotations

import gzip
from collections.abc import Callable

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.listening import PATIENCE
from support.operators import Operators, request
from support.raw_server import listening

from earshot_client.transport.http import HttpTransport
from earshot_protocol.errors import RemoteError
from earshot_server.helper_line import HelperLine
from earshot_server.operator_client import OperatorClient, ServerError

TOKEN = "token-of-an-administrator-who-is-not-there0"  # noqa: S105 - of nobody
LONGEST = 3100
"""Letters of a message, with the address before it."""


def head(*fields: str, status: str = "200 OK", kind: str = "application/msgpack") -> bytes:
    lines = (f"HTTP/1.1 {status}", f"Content-Type: {kind}", *fields, "", "")
    return "\r\n".join(lines).encode("latin-1")


def whole(content: bytes, *fields: str, status: str = "200 OK", kind: str = "text/html") -> bytes:
    return head(*fields, f"Content-Length: {len(content)}", status=status, kind=kind) + content


def problem(content: bytes) -> bytes:
    return whole(content, status="400 Bad", kind="application/problem+json")


CHUNKED = "Transfer-Encoding: chunked"
PACKED, JSON = "application/msgpack", "application/json"
ODD = {
    "nothing": b"",
    "an empty line": b"\r\n",
    "another protocol": b"220 mail.example ESMTP\r\n",
    "an alert of TLS": b"\x15\x03\x01\x00\x02\x02\x28",
    "zeros": bytes(100),
    "no version": b"HTTP/x 200 OK\r\n\r\n",
    "a status of five digits": b"HTTP/1.1 99999 OK\r\n\r\n",
    "a negative status": b"HTTP/1.1 -1 OK\r\n\r\n",
    "half a status": b"HTTP/1.1 2",
    "half a head": b"HTTP/1.1 200 OK\r\nContent-",
    "a long field": head("X: " + "a" * 70_000),
    "many fields": head(*["X: a"] * 200),
    "fields without names": whole(b"x", ": x", " y", "z"),
    "a long reason": b"HTTP/1.1 200 " + b"O" * 100_000,
    "half a body": head("Content-Length: 500") + b"abc",
    "no body": head("Content-Length: 500"),
    "an empty body": whole(b"", kind=PACKED),
    "a negative length": head("Content-Length: -5") + b"abc",
    "a length of many digits": head("Content-Length: " + "9" * 5000) + b"abc",
    "two lengths": head("Content-Length: 3", "Content-Length: 5") + b"abcde",
    "half a chunk": head(CHUNKED) + b"ff\r\nabc",
    "no chunk": head(CHUNKED) + b"zz\r\nabc",
    "a chunk of less than nothing": head(CHUNKED) + b"-ff\r\nabc",
    "a chunk of many digits": head(CHUNKED) + b"f" * 5000 + b"\r\nabc",
    "a chunk without an end": head(CHUNKED) + b"f" * 70_000,
    "no last chunk": head(CHUNKED) + b"3\r\nabc\r\n",
    "compressed": whole(gzip.compress(b"x"), "Content-Encoding: gzip", kind=PACKED),
    "a portal": whole(b"<html>please log in</html>"),
    "a kind that is none": whole(b"x", kind='\xff; charset="'),
    "no message": whole(b"\xc1", kind=PACKED),
    "a deep message": whole(b"\x91" * 60_000, kind=PACKED),
    "deep JSON": whole(b"[" * 60_000, kind=JSON),
    "JSON of many digits": whole(b'{"phases":' + b"9" * 6000 + b"}", kind=JSON),
    "JSON of half a letter": whole(b'{"phases":"\\ud800"}', kind=JSON),
    "UTF-16": whole('{"phases":[]}'.encode("utf-16"), kind=JSON),
    "an empty problem": problem(b""),
    "a deep problem": problem(b"[" * 60_000),
    "a problem of half a letter": problem(b'{"type":"x","title":"\\ud800","status":400}'),
    "a problem of 10^400": problem(b'{"type":"x","title":"x","status":1e400}'),
    "a redirect to nowhere": whole(b"", status="301 Moved"),
    "a redirect to bytes": whole(b"", "Location: \xff\x1b[2J", status="302 Found"),
    "a busy proxy": whole(b"<html>", "Retry-After: " + "9" * 400, status="503 Busy"),
    "a busy proxy's superscript": whole(b"<html>", "Retry-After: \xb2", status="503 Busy"),
    "another protocol's switch": b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
    "to be continued": b"HTTP/1.1 100 Continue\r\n\r\n",
    "reset": whole(b"", status="205 Reset Content"),
    "not modified": whole(b"", status="304 Not Modified"),
}


def _phone(address: str) -> None:
    key = Ed25519PrivateKey.generate()
    transport = HttpTransport(address, key, "5", tries=1, timeout=PATIENCE)
    for call in (transport.task, lambda: transport.enrol("code"), transport.leave):
        with pytest.raises(RemoteError) as refused:
            call()
        _is_a_line(refused.value)
    transport.close()


def _operator(address: str) -> None:
    client = OperatorClient(address, TOKEN)
    for call in (client.phases, lambda: client.erase(3), lambda: client.remove_operator("olga")):
        with pytest.raises(ServerError) as refused:
            call()
        _is_a_line(refused.value)


def _leader(address: str) -> None:
    operators = Operators()
    with (
        HelperLine(address, operators.leader, timeout=PATIENCE) as line,
        pytest.raises(RemoteError) as refused,
    ):
        line.answer(request(operators.begin()))
    _is_a_line(refused.value)


def _is_a_line(error: Exception) -> None:
    said = str(error)
    assert said.isprintable()
    assert len(said) <= LONGEST
    assert TOKEN not in said


@pytest.mark.parametrize("caller", [_phone, _operator, _leader])
@pytest.mark.parametrize("answer", ODD.values(), ids=ODD)
def test_an_odd_response_is_one_named_error(answer: bytes, caller: Callable[[str], None]) -> None:
    with listening(answer) as (port, _):
        caller(f"http://127.0.0.1:{port}")


def test_only_what_a_server_says_of_a_deletion_is_one() -> None:
    for answer in (whole(b"<html>"), whole(b"{}", kind=JSON)):
        with (
            listening(answer) as (port, _),
            pytest.raises(ServerError, match="sent an invalid response: 200 OK"),
        ):
            OperatorClient(f"http://127.0.0.1:{port}", TOKEN).erase(3)
    with listening(b"HTTP/1.1 204 No Content\r\n\r\n") as (port, heard):
        OperatorClient(f"http://127.0.0.1:{port}", TOKEN).erase(3)
        assert heard[0].startswith(b"DELETE ")
