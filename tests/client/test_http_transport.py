from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.phone_server import HangUp, PhoneServer, Reply, problem, serving
from support.raw_server import DRIPS, Say, ok, read_request, saying
from support.refusals import refused

from earshot_client.transport.http import (
    LONGEST_AWAY,
    LONGEST_PAUSE,
    TRIES,
    HttpTransport,
    InvitationRefusedError,
    ServerProblemError,
    UnavailableError,
)
from earshot_protocol.api import (
    ANSWER,
    ENROL,
    MESSAGEPACK,
    PROBLEM,
    TASK,
    AskTask,
    decode_body,
)
from earshot_protocol.errors import (
    InvalidInputError,
    MalformedMessageError,
    RemoteError,
    RepeatedMessageError,
    UnexpectedMessageError,
)
from earshot_protocol.messages import Wait, decode_answer
from earshot_protocol.secure_sum.messages import AdvertisedKeys
from earshot_protocol.signatures import SignatureError, StaleSignatureError
from earshot_protocol.wire import LARGEST_TASK_BYTES, encode

ANSWERED = AdvertisedKeys(sum_id=bytes(16), sender=3, public_key=bytes(32))
WAIT = Wait(seconds=7.0)


def friendly(path: str, phone: str, body: bytes) -> Reply:
    return Reply(encode(WAIT)) if path == TASK else Reply(status=204)


class Line:
    """An enrolled phone's transport to a server whose next replies may be told."""

    def __init__(self, server: PhoneServer, **options: object) -> None:
        self.server = server
        self.pauses: list[float] = []
        key = Ed25519PrivateKey.generate()
        server.keys["5"] = key.public_key().public_bytes_raw()
        options = {"pause": self.pauses.append, "timeout": 60.0} | options
        self.transport = HttpTransport(server.url, key, "5", **options)  # type: ignore[arg-type]

    def next(self, *replies: Reply | type[HangUp]) -> None:
        """What the server says to the next requests; then it is friendly again."""
        left = list(replies)

        def trap(path: str, body: bytes) -> Reply | None:
            if not left:
                return None
            reply = left.pop(0)
            if isinstance(reply, Reply):
                return reply
            raise reply

        self.server.trap = trap


@contextmanager
def line(**options: object) -> Iterator[Line]:
    with serving(PhoneServer(friendly)) as server:
        made = Line(server, **options)
        with closing(made.transport):
            yield made


def test_tasks_and_answers_cross_on_one_connection() -> None:
    known = (b"a" * 16, b"b" * 16)
    with line(known=lambda: known) as made:
        for _ in range(3):
            assert made.transport.task() == WAIT
            made.transport.send(ANSWERED)
        (asked, first), (answered, second) = made.server.requests[:2]
        assert (asked, decode_body(first, MESSAGEPACK, AskTask).known) == (TASK, known)
        assert (answered, decode_answer(second)) == (ANSWER, ANSWERED)
        assert (len(made.server.requests), made.server.connections) == (6, 1)
        assert made.pauses == []


def test_a_new_phone_enrols_and_then_speaks_in_its_name() -> None:
    with serving(PhoneServer(friendly)) as server:
        key = Ed25519PrivateKey.generate()
        with closing(HttpTransport(server.url, key)) as transport:
            with pytest.raises(InvitationRefusedError, match="not an invitation"):
                transport.enrol("stolen")
            name = transport.enrol("welcome")
            assert transport.enrol("welcome") == name == transport.phone
            assert server.keys == {name: key.public_key().public_bytes_raw()}
            assert transport.task() == WAIT


def test_in_another_phones_name_nothing_is_answered() -> None:
    with line() as made:
        made.server.keys["5"] = Ed25519PrivateKey.generate().public_key().public_bytes_raw()
        with pytest.raises(SignatureError, match="does not fit"):
            made.transport.task()
        assert len(made.server.requests) == 1


# --------------------------------------------------------------------------------------- patience


@pytest.mark.parametrize("bad", [HangUp, *(problem(s, "x") for s in (408, 429, 502, 503, 504))])
def test_what_may_pass_is_tried_again_and_the_same_is_sent(bad: Reply | type[HangUp]) -> None:
    with line() as made:
        made.next(*[bad] * (TRIES - 1))
        made.transport.send(ANSWERED)
        assert [body for _, body in made.server.requests] == [encode(ANSWERED)] * TRIES
        assert len(made.pauses) == TRIES - 1
        for times, pause in enumerate(made.pauses):
            assert 0.5 * 2**times <= pause <= 1.0 * 2**times


UNFIT: list[tuple[type[RemoteError], str, Reply]] = [
    (ServerProblemError, "401", problem(401, "stale-signature", now=1e300)),  # no time to sign with
    # Not tasks: a page, not MessagePack, cut off, an answer, nothing, too large.
    (MalformedMessageError, "", Reply(b"<html>Log in to this network</html>", 200, "text/html")),
    (MalformedMessageError, "", Reply(b"\xc1", 200)),
    (MalformedMessageError, "", Reply(encode(WAIT)[:-1], 200)),
    (MalformedMessageError, "", Reply(encode(ANSWERED), 200)),
    (MalformedMessageError, "", Reply(b"", 200)),
    (MalformedMessageError, "", Reply(b"\x00" * (LARGEST_TASK_BYTES + 1), 200)),
    # Answers of another kind.
    (ServerProblemError, "302", Reply(b"", 302, "text/plain", {"Location": "http://127.0.0.1:1/"})),
    (ServerProblemError, "400", Reply(b"{", 400, PROBLEM)),
    (ServerProblemError, "204", Reply(b"", 204)),
    (ServerProblemError, "500", Reply(b"\x00" * 10**6, 500, PROBLEM)),
]


@pytest.mark.parametrize(("error", "words", "reply"), UNFIT)
def test_a_reply_of_no_use_is_a_named_refusal_and_the_next_one_counts(
    error: type[RemoteError], words: str, reply: Reply
) -> None:
    with line() as made:
        made.next(reply)
        with pytest.raises(error, match=words or None):
            made.transport.task()
        assert made.transport.task() == WAIT


@pytest.mark.parametrize(
    ("error", "words", "reply", "tries"),
    [
        (
            UnavailableError,
            "nothing was ch",
            problem(503, "database", "nothing was changed"),
            TRIES,
        ),
        (StaleSignatureError, "now", problem(401, "stale-signature", "now", now=1e9), 2),
    ],
)
def test_after_so_many_tries_it_gives_up_by_name(
    error: type[RemoteError], words: str, reply: Reply, tries: int
) -> None:
    with line() as made:
        made.next(*[reply] * tries)
        with pytest.raises(error, match=words):
            made.transport.task()
        assert len(made.server.requests) == tries
        assert made.transport.task() == WAIT


def test_a_server_that_names_a_time_is_left_alone_until_then() -> None:
    with line() as made:
        busy = problem(429, "rate-limit")
        busy.fields["Retry-After"] = "9"
        made.next(busy)
        assert made.transport.task() == WAIT
        assert made.pauses == [9.0]
        busy.fields["Retry-After"] = str(int(LONGEST_PAUSE) + 1)
        made.next(busy)
        with pytest.raises(UnavailableError) as raised:
            made.transport.task()
        assert raised.value.seconds == LONGEST_PAUSE + 1
        assert made.pauses == [9.0]


@pytest.mark.parametrize("asked", [LONGEST_AWAY + 1, 11 * 86_400, 10**30])
def test_no_server_sends_a_phone_away_for_days(asked: float) -> None:
    with line() as made:
        busy = problem(503, "database")
        busy.fields["Retry-After"] = str(int(asked))
        made.next(busy)
        with pytest.raises(UnavailableError) as raised:
            made.transport.task()
        assert raised.value.seconds == LONGEST_AWAY


@pytest.mark.parametrize("value", ["soon", "-3", "Sat, 21 Nov 2026 01:00:00 GMT", "³"])
def test_a_time_that_is_none_does_not_count(value: str) -> None:
    with line() as made:
        busy = problem(503, "database")
        busy.fields["Retry-After"] = value.encode().decode("latin-1")
        made.next(busy)
        assert made.transport.task() == WAIT
        assert made.pauses[0] <= 1.0


def test_a_connection_that_went_idle_costs_no_pause() -> None:
    with line() as made:
        assert made.transport.task() == WAIT
        made.next(HangUp)  # as a server does that ends idle connections
        assert made.transport.task() == WAIT
        assert made.pauses == []
        assert made.server.connections == 2


def test_nobody_there_is_one_line_after_all_tries() -> None:
    pauses: list[float] = []
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # nobody else listens there either
        transport = HttpTransport(
            f"http://127.0.0.1:{silent.getsockname()[1]}",
            Ed25519PrivateKey.generate(),
            "5",
            pause=pauses.append,
        )
        with pytest.raises(UnavailableError, match="refused") as raised:
            transport.task()
    assert "\n" not in str(raised.value)
    assert len(pauses) == TRIES - 1


def test_a_clock_that_is_wrong_is_set_right_once() -> None:
    for skew in (-86_400.0, 86_400.0, 40 * 365 * 86_400.0):
        with line() as made:
            made.server.clock = lambda skew=skew: 1.8e9 + skew  # type: ignore[misc]
            assert made.transport.task() == WAIT
            made.transport.send(ANSWERED)
            assert len(made.server.requests) == 3


# --------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("status", "kind", "error"),
    [
        (400, "malformed", MalformedMessageError),
        (413, "too-large", MalformedMessageError),
        (401, "signature", SignatureError),
        (403, "invitation-used-up", InvitationRefusedError),
        (409, "repeated", RepeatedMessageError),
        (409, "unexpected", UnexpectedMessageError),
        (404, "unknown-path", ServerProblemError),
        (500, "internal", ServerProblemError),
    ],
)
def test_a_problem_is_an_error_by_its_kind(
    status: int, kind: str, error: type[RemoteError]
) -> None:
    with line() as made:
        made.next(problem(status, kind, "so it is"))
        with pytest.raises(error, match="so it is") as raised:
            made.transport.send(ANSWERED)
        assert type(raised.value) is error
        assert len(made.server.requests) == 1
        made.transport.send(ANSWERED)


def test_a_servers_text_cannot_steer_a_terminal() -> None:
    with line() as made:
        made.next(problem(500, "internal", "\x1b[2J\n\rcalm\u202e" + "x" * 10**4))
        with pytest.raises(ServerProblemError) as raised:
            made.transport.task()
        assert str(raised.value).isprintable()
        assert "calm" in str(raised.value)
        assert len(str(raised.value)) <= 300


def raw_server(
    talk: Callable[[socket.socket], None], connections: int = 2
) -> tuple[str, threading.Thread]:
    """A server that says to each of its connections whatever `talk` does."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with listener:
            for _ in range(connections):
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65_536)
                    talk(connection)

    thread = threading.Thread(target=serve)
    thread.start()
    return f"http://127.0.0.1:{listener.getsockname()[1]}", thread


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/msgpack\r\nContent-Length: 99\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/msgpack\r\nContent-Length: 99\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000 + b"\r\n",
        b"HTTP/1.1 200 " + b"O" * 10**5,
    ],
)
def test_half_a_response_counts_as_none(said: bytes) -> None:
    url, thread = raw_server(lambda connection: connection.sendall(said))
    key = Ed25519PrivateKey.generate()
    transport = HttpTransport(url, key, "5", tries=2, timeout=60.0, pause=lambda seconds: None)
    with pytest.raises(UnavailableError, match="cannot be reached"):
        transport.task()
    thread.join()


def test_a_network_that_stands_still_is_left() -> None:
    gone = threading.Event()
    url, thread = raw_server(lambda connection: (gone.wait(), None)[1], connections=1)
    key = Ed25519PrivateKey.generate()
    transport = HttpTransport(url, key, "5", tries=1, timeout=0.05)
    with pytest.raises(UnavailableError, match="timed out"):
        transport.task()
    gone.set()
    thread.join()


@pytest.mark.parametrize("say", DRIPS.values(), ids=DRIPS)
def test_what_never_ends_is_cut_off(say: Say) -> None:
    key = Ed25519PrivateKey.generate()
    with (
        saying(say) as address,
        closing(HttpTransport(address, key, "5", tries=1, deadline=0.2)) as transport,
        pytest.raises(UnavailableError, match="takes too long"),
    ):
        transport.task()


def test_a_connection_that_is_used_again_gets_no_more_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that went idle is made anew at once, but not one that took all the time there was."""
    made = 0

    def once(connection: socket.socket) -> None:
        connection.sendall(ok(f"Content-Length: {len(encode(WAIT))}") + encode(WAIT))
        read_request(connection)
        DRIPS["body"](connection)

    with saying(once) as address:
        key = Ed25519PrivateKey.generate()
        with closing(HttpTransport(address, key, "5", tries=1)) as transport:
            connect = transport._connection.connect

            def counted() -> None:
                nonlocal made
                made += 1
                connect()

            monkeypatch.setattr(transport._connection, "connect", counted)
            assert transport.task() == WAIT
            transport._deadline = 0.2
            with pytest.raises(UnavailableError, match="takes too long"):
                transport.task()
    assert made == 1


# ------------------------------------------------------------------------------------ the address


test_what_is_not_a_safe_address_is_refused_by_name = refused(
    InvalidInputError,
    *[
        ("https", HttpTransport, url, Ed25519PrivateKey.generate())
        for url in (
            "",
            "earshot.example",
            "ftp://earshot.example",
            "https://",
            "https://earshot.example:port",
            "https://earshot.example:70000",
            "https://[::1",
            "https://earshot.example/base",
            "https://earshot.example?a=b",
            "https://user@earshot.example",
            "http://earshot.example",
            "http://192.0.2.1:8000",
            "http://localhost.example",
        )
    ],
)


def test_a_name_that_cannot_be_looked_up_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    transport = HttpTransport("https://b\u00fccher.invalid", Ed25519PrivateKey.generate(), tries=1)
    with pytest.raises(UnavailableError, match=r"cannot be reached: .*not known"):
        transport.task()


def test_https_is_verified_unless_the_app_brings_its_own_trust() -> None:
    transport = HttpTransport("https://earshot.example/", Ed25519PrivateKey.generate())
    context = transport._connection._context  # type: ignore[attr-defined]
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    own = ssl.create_default_context()
    transport = HttpTransport("https://earshot.example", Ed25519PrivateKey.generate(), tls=own)
    assert transport._connection._context is own  # type: ignore[attr-defined]


def test_enrolment_asks_for_nothing_but_key_and_code() -> None:
    with serving(PhoneServer(friendly)) as server:
        with closing(HttpTransport(server.url, Ed25519PrivateKey.generate())) as transport:
            transport.enrol("welcome")
        ((path, body),) = server.requests
        assert path == ENROL
        assert set(msgspec.msgpack.decode(body)) == {"public_key", "attestation"}
