"""Nobody who is slow, silent or endless keeps the server from answering anybody else."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace

import pytest
from flask import Flask, Response, g, request
from support.front_door import LONG, PATIENT, Door
from support.networked import await_

from earshot_protocol.api import JSON, LARGEST_SMALL_BODY
from earshot_server.api import bodies, problems
from earshot_server.api.health import LIVE, READY, STUCK
from earshot_server.api.pages_of_phones import PagesOfPhones
from earshot_server.api.problems import OperatorError
from earshot_server.front import connections, gateway
from earshot_server.front.connections import SWEEP_EVERY

LARGE = 2**20


def application(blocked: threading.Event) -> Flask:
    """What answers; `seen` is what it was asked for."""
    app = Flask(__name__)
    app.seen = []  # type: ignore[attr-defined]
    problems.register(app)

    @app.before_request
    def begin() -> None:
        g.request_id = "0"
        app.seen.append(request.path)  # type: ignore[attr-defined]

    @app.get(LIVE)
    def live() -> str:
        return "live"

    @app.get(READY)
    def ready() -> str:
        return "stuck" if request.environ[STUCK] else "ready"

    @app.get("/wait")
    def wait() -> str:
        assert blocked.wait(LONG)
        return "done"

    @app.get("/large")
    def large() -> bytes:
        return bytes(8 * LARGE)

    @app.post("/open")
    def anybody() -> str:
        return str(len(bodies.read()))

    @app.post("/known")
    def known() -> str:
        if request.headers.get("X-Name") is None:
            raise OperatorError("Bearer")
        g.phone = request.headers["X-Name"]
        return str(len(bodies.read(LARGE)))

    @app.post("/raw")
    def raw() -> Response:
        return Response(request.get_data())

    @app.route("/echo/<path:path>", methods=["GET", "POST"])
    def echo(path: str) -> dict[str, object]:
        environ = request.environ
        names = ("REMOTE_ADDR", "SERVER_PROTOCOL", "QUERY_STRING", "wsgi.url_scheme", "HTTP_A_B")
        return {"path": path} | {name: environ.get(name) for name in names}

    return app


@pytest.fixture
def blocked() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def door(request: pytest.FixtureRequest, blocked: threading.Event) -> Iterator[Door]:
    patience = replace(PATIENT, **getattr(request, "param", {}))
    with Door(application(blocked), patience, 2).open() as door:
        yield door


Pass = Callable[[float], None]
"""Lets seconds pass at once."""


@pytest.fixture
def pass_(monkeypatch: pytest.MonkeyPatch) -> Pass:
    """Move the clock of all deadlines."""
    passed = 0.0

    def more(seconds: float) -> None:
        nonlocal passed
        passed += seconds

    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + passed)
    monkeypatch.setattr(connections, "time", clock)
    return more


def short(**seconds: float) -> pytest.MarkDecorator:
    """The one deadline that is not long."""
    return pytest.mark.parametrize("door", [seconds], indirect=True, ids=["short"])


def post(path: str, announced: int, *fields: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: x", f"Content-Type: {JSON}", *fields]
    return "\r\n".join([*lines, f"Content-Length: {announced}", "", ""]).encode()


CHUNKED = post("/open", 0).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


def heard(connection: socket.socket) -> bytes:
    """All that comes until the other side ends it."""
    said = b""
    with contextlib.suppress(ConnectionResetError):
        while received := connection.recv(65_536):
            said += received
    return said


def answer(connection: socket.socket) -> tuple[int, bytes]:
    """One response; the connection goes on."""
    head, body = b"", b""
    while not head.endswith(b"\r\n\r\n"):  # by bytes: two responses may arrive as one piece
        received = connection.recv(1)
        assert received, head
        head += received
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    length = int(lengths[0].split(b":")[1])
    while len(body) < length:
        received = connection.recv(min(65_536, length - len(body)))
        assert received, body
        body += received
    return int(head.split()[1]), body


def status(said: bytes) -> int:
    return int(said.split()[1]) if said else 0


def never(said: bytes) -> bool:
    return False


def drip(connection: socket.socket, words: bytes, until: Callable[[bytes], bool] = never) -> bytes:
    """A byte every tenth of a second, over and over; what was answered meanwhile."""
    said, deadline = b"", time.monotonic() + LONG
    while not until(said):
        assert time.monotonic() < deadline
        for byte in words:
            try:
                connection.sendall(bytes([byte]))
            except OSError:
                return said
            readable, _, _ = select.select([connection], [], [], 0.1)
            if readable:
                try:
                    received = connection.recv(65_536)
                except OSError:
                    return said
                if not received:
                    return said
                said += received
    return said


# ---------------------------------------------------------------------------- who lets us wait


@short(fields=1.0)
def test_who_says_nothing_is_cut_off(door: Door) -> None:
    with door.connect() as silent:
        assert heard(silent) == b""


@short(fields=1.0)
def test_fields_have_a_deadline_however_steadily_they_drip(door: Door) -> None:
    with door.say(b"GET / HTTP/1.1\r\nHost: x\r\n") as slow:
        assert drip(slow, b"X-A: b\r\n") == b""


@short(fields=1.0)
def test_lines_before_a_request_buy_no_time(door: Door) -> None:
    with door.connect() as slow:
        assert drip(slow, b"\r\n") == b""


@short(body=1.0)
def test_a_body_has_a_deadline_however_steadily_it_drips(door: Door) -> None:
    with door.say(post("/open", 1000)) as slow:
        said = drip(slow, b" ", lambda said: b"too-slow" in said)
    assert status(said) == 408
    assert b"urn:earshot:problem:too-slow" in said


def test_the_rest_of_a_body_that_nobody_wants_is_heard(door: Door) -> None:
    """The client is still sending when it is refused, and hears why."""
    with door.say(post("/known", LARGE)) as stranger:
        stranger.sendall(bytes(LARGE))
        assert answer(stranger)[0] == 401
        stranger.sendall(get(LIVE))
        assert answer(stranger) == (200, b"live")


@short(rest=60.0)
def test_the_rest_of_a_body_that_nobody_wants_is_not_heard_forever(door: Door, pass_: Pass) -> None:
    with door.say(post("/known", LARGE)) as slow:
        assert answer(slow)[0] == 401
        pass_(61.0)
        assert drip(slow, b" ") == b""


@short(body=1.0, bytes_per_second=2.0**23)
def test_who_does_not_take_the_response_is_cut_off(door: Door) -> None:
    with door.say(get("/large") * 3) as slow:
        door.hears("/large")
        await_(lambda: not door.connections, "the end of the connection")
        assert len(heard(slow)) < 3 * 8 * LARGE


def test_who_takes_it_in_time_has_all_of_it(door: Door) -> None:
    with door.say(get("/large") * 2) as client:
        for _ in range(2):
            assert answer(client) == (200, bytes(8 * LARGE))


@short(fields=60.0)
def test_between_two_requests_a_connection_may_rest(door: Door, pass_: Pass) -> None:
    with door.say(get(LIVE)) as client:
        assert answer(client) == (200, b"live")
        pass_(61.0)
        time.sleep(2 * SWEEP_EVERY)
        client.sendall(get(LIVE))
        assert answer(client) == (200, b"live")


@short(idle=1.0)
def test_between_two_requests_a_connection_does_not_rest_forever(door: Door) -> None:
    with door.say(get(LIVE)) as client:
        assert heard(client).endswith(b"live")


def test_who_answers_nobody_else_is_not_ready(
    door: Door, blocked: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(path: str) -> bytes:
        with door.say(get(path)) as client:
            return answer(client)[1]

    assert ask(READY) == b"ready"
    with monkeypatch.context() as hasty:
        hasty.setattr(gateway, "_PROMPT", 0.05)
        waiting = [door.say(get("/wait")) for _ in range(2)]  # as many as there are threads
        door.hears("/wait", 2)
        assert [ask(READY) for _ in range(5)] == [b"stuck"] * 5
        assert ask(LIVE) == b"live"
    assert door.gateway._threads._work_queue.qsize() == 1  # however often they ask
    blocked.set()
    assert [answer(each) for each in waiting] == [(200, b"done")] * 2
    assert ask(READY) == b"ready"
    for each in waiting:
        each.close()


def test_threads_are_for_requests_that_are_whole(door: Door, blocked: threading.Event) -> None:
    slow = [door.say(post("/open", 1000)) for _ in range(50)]
    with door.say(post("/open", 2) + b"{}") as quick:
        assert answer(quick) == (200, b"2")
    busy = [door.say(get("/wait")) for _ in range(20)]  # there are two threads
    with door.say(get(LIVE)) as balancer:
        assert answer(balancer) == (200, b"live")
    blocked.set()
    assert all(answer(each) == (200, b"done") for each in busy)
    for each in slow + busy:
        each.close()


# ------------------------------------------------------------------------------------- bodies


def test_a_stranger_is_refused_before_the_body_is_there(door: Door) -> None:
    with door.say(post("/known", LARGE)) as stranger:
        assert answer(stranger)[0] == 401
    with door.say(post("/known", LARGE + 1)) as stranger:
        assert answer(stranger)[0] == 401


def test_a_body_that_comes_late_is_waited_for_and_counted_once(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "_RIGHT_BEHIND", 0.01)
    with door.say(post("/known", LARGE, "X-Name: 7")) as phone:
        time.sleep(0.1)
        phone.sendall(bytes(LARGE // 2))
        time.sleep(0.1)
        phone.sendall(bytes(LARGE // 2))
        assert answer(phone) == (200, str(LARGE).encode())
    with door.say(post("/open", 4)) as phone:
        time.sleep(0.2)
        phone.sendall(b"{}{}")
        assert answer(phone) == (200, b"4")
        phone.sendall(post("/open", 4) + b"{}{}")
        assert answer(phone) == (200, b"4")


def test_bodies_of_unknown_length_are_bounded(door: Door) -> None:
    with door.say(CHUNKED + b"2\r\n{}\r\n0\r\n\r\n") as client:
        assert answer(client) == (200, b"2")
        chunk = b"%x\r\n%s\r\n" % (LARGEST_SMALL_BODY, bytes(LARGEST_SMALL_BODY))
        client.sendall(CHUNKED + 2 * chunk)
        assert answer(client)[0] == 413


def test_one_sender_has_few_long_bodies_under_way(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (door.say(post("/known", LARGE, "X-Name: 7")) for _ in range(2))
    await_(lambda: door.gateway._senders.total() == 2, "two bodies under way")
    with door.say(post("/known", LARGE, "X-Name: 7")) as third:
        refused, body = answer(third)
    assert refused == 503
    assert b"urn:earshot:problem:busy" in body
    for each in (first, second):
        each.sendall(bytes(LARGE))
        assert answer(each) == (200, str(LARGE).encode())
        each.close()
    monkeypatch.setattr(gateway, "_LARGEST_BODIES", LARGE - 1)
    with door.say(post("/known", LARGE, "X-Name: 8")) as crowded:
        assert answer(crowded)[0] == 503


def test_who_asks_first_is_told_to_send_or_not_to(door: Door) -> None:
    with door.say(post("/known", LARGE, "Expect: 100-continue")) as stranger:
        assert answer(stranger)[0] == 401
    with door.say(post("/known", 2, "Expect: 100-continue", "X-Name: 7")) as phone:
        assert phone.recv(100).startswith(b"HTTP/1.1 100 ")
        phone.sendall(b"{}")
        assert answer(phone) == (200, b"2")


def test_a_body_that_is_read_past_our_own_reader_is_waited_for_as_well(door: Door) -> None:
    with door.say(post("/raw", 4)) as client:
        time.sleep(0.2)
        client.sendall(b"1234")
        assert answer(client) == (200, b"1234")


# --------------------------------------------------------------------------------- what is HTTP


@pytest.mark.parametrize(
    ("words", "refused"),
    [
        (b"GET / HTTP/1.1\r\n" + b"X: " + b"a" * 300_000, 431),
        (b"GET /" + b"a" * 300_000, 431),
        (b"GET / HTTP/1.1\r\n" + b"X: a\r\n" * 101 + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * PATIENT.field_bytes + b"\r\n\r\n", 431),
        (b"GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505),
        (b"nonsense\r\n\r\n", 400),
        (post("/open", 1).replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n"), 400),
        (CHUNKED.replace(b"chunked", b"gzip, chunked") + b"0\r\n\r\n", 400),
        (
            CHUNKED.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n") + b"0\r\n\r\n",
            400,
        ),
        (CHUNKED + b"0\r\nX: " + b"a" * 2 * PATIENT.field_bytes, 431),
        (CHUNKED + b"0\r\n" + b"X: a\r\n" * PATIENT.field_bytes, 431),
        (CHUNKED + b"1;" + b"a" * 2 * PATIENT.field_bytes, 431),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", 400),
    ],
)
def test_what_is_no_request_is_refused_and_that_is_all(
    door: Door, words: bytes, refused: int
) -> None:
    with door.connect() as client:
        with contextlib.suppress(OSError):
            client.sendall(words)
        said = heard(client)
    assert status(said) in (refused, 0)  # 0: it was still sending when it was cut off
    assert said.count(b"content-length:") <= 1
    if said:
        assert b"application/problem+json" in said
    with door.say(get(LIVE)) as client:
        assert answer(client) == (200, b"live")


@pytest.mark.parametrize(
    ("request_", "refused", "told"),
    [
        (b"POST /v1/task HTTP/1.1\r\nOrigin: https://a.example\r\n", 431, True),
        (b"POST /v1/task HTTP/1.1\r\nOrigin: https://b.example\r\n", 431, False),
        (b"POST /v1/phases HTTP/1.1\r\nOrigin: https://a.example\r\n", 431, False),
        (b"GET /v1/phones HTTP/1.1\r\nOrigin: https://a.example\r\n", 431, False),
        (b"POST /v1/task HTTP/1.1\r\n", 431, False),
        (b"POST /v1/task HTTP/2.0\r\nOrigin: https://a.example\r\n", 505, True),
    ],
)
def test_a_page_may_read_refusals_of_what_no_application_sees(
    request_: bytes, refused: int, told: bool
) -> None:
    app = Flask(__name__)
    PagesOfPhones(("https://a.example",)).install(app)
    with Door(app, PATIENT, 1).open() as door, door.connect() as client:
        with contextlib.suppress(OSError):
            client.sendall(request_ + b"X: a\r\n" * (110 if refused == 431 else 1) + b"\r\n")
        said = heard(client)
    assert status(said) == refused
    assert (b"access-control-allow-origin: https://a.example\r\n" in said.lower()) is told
    assert (b"b.example" in said) is False


def test_the_application_sees_what_was_sent(door: Door) -> None:
    words = get("/echo/%C3%A9//a%2Fb?c=%20").replace(b"Host", b"A-B: 1\r\nA_B: 2\r\nA-B: 3\r\nHost")
    with door.say(words) as client:
        code, body = answer(client)
    assert code == 200
    assert b'"HTTP_A_B":"1,3"' in body
    assert b'"QUERY_STRING":"c=%20"' in body
    assert b'"REMOTE_ADDR":"127.0.0.1"' in body
    assert b"\\u00e9//a/b" in body


def test_fields_behind_a_body_say_nothing(door: Door) -> None:
    words = CHUNKED.replace(b"/open", b"/echo/a").replace(b"Host", b"A-B: 1\r\nHost")
    with door.say(words + b"2\r\n{}\r\n0\r\nA-B: 2\r\n\r\n" + get(LIVE)) as client:
        code, body = answer(client)
        assert (code, b'"HTTP_A_B":"1"' in body) == (200, True)
        assert answer(client) == (200, b"live")


def test_a_body_in_small_chunks_may_be_long(door: Door) -> None:
    pieces = PATIENT.field_bytes // 4
    with door.say(CHUNKED.replace(b"/open", b"/raw")) as client:
        client.sendall(b"1\r\na\r\n" * pieces + b"0\r\n\r\n")
        assert answer(client) == (200, b"a" * pieces)


def test_who_has_said_all_still_hears_the_answer(door: Door) -> None:
    with door.say(post("/open", 2) + b"{}") as client:
        client.shutdown(socket.SHUT_WR)
        assert heard(client).endswith(b"2")
    with door.say(post("/open", 2) + b"{") as client:
        client.shutdown(socket.SHUT_WR)
        assert heard(client) == b""


def test_another_protocol_is_not_taken_up(door: Door) -> None:
    words = get(LIVE).replace(b"Host", b"Connection: upgrade\r\nUpgrade: h2c\r\nHost")
    with door.say(words) as client:
        assert answer(client) == (200, b"live")


# ------------------------------------------------------------------------------------ how many


def test_one_address_has_so_many_connections_and_the_newest_are_kept(
    blocked: threading.Event,
) -> None:
    few = replace(PATIENT, per_address=5)
    with Door(application(blocked), few, 2).open() as door:
        served = door.say(get("/wait"))
        door.hears("/wait")
        slow = [door.connect() for _ in range(20)]
        await_(lambda: len(readable(slow)) >= 16, "the end of sixteen")
        assert readable(slow) == slow[:16]
        with door.say(get(LIVE)) as newcomer:
            assert answer(newcomer) == (200, b"live")
        elsewhere = [door.connect("127.0.0.2") for _ in range(5)]
        # One served, three slow ones, as the newcomer took the place of a fourth, and all of these.
        await_(lambda: len(door.connections) == 9, "five from elsewhere")
        assert not readable(elsewhere)
        blocked.set()
        assert answer(served) == (200, b"done")  # nobody who is being served is sent away
        for each in (served, *slow, *elsewhere):
            each.close()


def readable(connections: list[socket.socket]) -> list[socket.socket]:
    """Those that have ended, as nothing was said to them."""
    return select.select(connections, [], [], 0.0)[0]


def test_altogether_there_are_so_many_connections(blocked: threading.Event) -> None:
    few = replace(PATIENT, per_address=None, altogether=4)
    with Door(application(blocked), few, 4).open() as door:
        busy = [door.say(get("/wait")) for _ in range(4)]
        door.hears("/wait", 4)
        with door.say(get(LIVE)) as newcomer:
            assert heard(newcomer) == b""  # everybody is being served
        blocked.set()
        assert all(answer(each) == (200, b"done") for each in busy)
        with door.say(get(LIVE)) as newcomer:
            assert answer(newcomer) == (200, b"live")
        for each in busy:
            each.close()


def test_nobody_who_is_slow_delays_the_end(blocked: threading.Event) -> None:
    with Door(application(blocked), PATIENT, 2).open() as door:
        slow = [
            door.connect(),
            door.say(post("/open", 9)),
            door.say(b"GET / H"),
            door.say(get(LIVE)),
        ]
        served = door.say(get("/wait"))
        door.hears("/wait")
        await_(lambda: len(door.connections) == 5, "all that are slow")
        threading.Timer(0.5, blocked.set).start()
        door.stop()
        assert answer(served) == (200, b"done")
        for each in (*slow, served):
            each.close()
