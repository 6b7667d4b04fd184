"""An operator's token goes to the server that was named, and whatever answers is said in a line."""

from __future__ import annotations

import base64
import gzip
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from support.authority import Authority
from support.command import earshot
from support.listening import PATIENCE
from support.raw_server import drip, listening, saying

from earshot_protocol.connecting import connect, connection
from earshot_protocol.errors import InvalidInputError
from earshot_server import operator_client
from earshot_server.credentials import TOKEN_FILE
from earshot_server.operator_client import TOKEN_VARIABLE, OperatorClient, ServerError

TOKEN = "token-of-an-administrator-who-is-not-there0"  # noqa: S105 - of nobody
EVERYWHERE = ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
PHASES = b'{"phases":[]}'


def ok(
    content: bytes = PHASES, media: str = "application/json", length: int | None = None
) -> bytes:
    length = len(content) if length is None else length
    return (
        f"HTTP/1.1 200 OK\r\nContent-Type: {media}\r\nContent-Length: {length}\r\n\r\n".encode()
        + content
    )


def refused(server: str, token: str = TOKEN) -> str:
    """What an operator's command says, in one line."""
    with pytest.raises(ServerError) as caught:
        OperatorClient(server, token).phases()
    said = str(caught.value)
    assert said.isprintable(), "it is one line, and moves no cursor"
    assert TOKEN not in said
    return said


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*EVERYWHERE, "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)


# ----------------------------------------------------------------------------------------- proxies


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST"])
def test_no_proxy_is_asked_for_this_machine(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with listening(ok()) as (port, heard), listening(ok()) as (proxy, overheard):
        for name in EVERYWHERE:
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy}")
        assert OperatorClient(f"http://{host}:{port}", TOKEN).phases() == ()
        assert overheard == []
        assert TOKEN.encode() in heard[0]


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost"])
def test_nor_for_this_machine_by_https(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    assert connection(f"https://{host}:8443", None, 1.0).host == host.strip("[]")


class Tunnel:
    """A proxy as companies have them: it leads every name to one port, and reads along."""

    def __init__(self, port: int) -> None:
        self.asked, self.overheard = b"", b""
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]

    @contextmanager
    def open(self) -> Iterator[None]:
        thread = threading.Thread(target=self._serve)
        thread.start()
        try:
            yield
        finally:
            self._listener.close()
            thread.join()

    def _serve(self) -> None:
        client, _ = self._listener.accept()
        with client, socket.create_connection(("127.0.0.1", self._port)) as server:
            while not self.asked.endswith(b"\r\n\r\n"):
                self.asked += client.recv(1)
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            back = threading.Thread(target=self._pass, args=(server, client))
            back.start()
            self._pass(client, server)
            back.join()

    def _pass(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while received := one.recv(65_536):
                self.overheard += received
                other.sendall(received)
        with suppress(OSError):
            other.shutdown(socket.SHUT_WR)


def test_a_proxy_opens_the_way_for_https_and_sees_the_name_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    with listening(ok(), authority.serving("earshot.example")) as (port, heard):
        tunnel = Tunnel(port)
        monkeypatch.setenv("https_proxy", f"http://olga:p%40ss@127.0.0.1:{tunnel.port}")
        with tunnel.open():
            assert OperatorClient("https://earshot.example", TOKEN).phases() == ()
    assert TOKEN.encode() in heard[0]
    assert b"Host: earshot.example\r\n" in heard[0]
    assert tunnel.asked.startswith(b"CONNECT earshot.example:443 ")
    known = base64.b64encode(b"olga:p@ss")
    assert b"Proxy-Authorization: Basic " + known in tunnel.asked
    assert tunnel.overheard
    for secret in (TOKEN.encode(), b"/v1/phases", b"Bearer"):
        assert secret not in tunnel.asked + tunnel.overheard
    assert known not in heard[0]


def test_a_proxy_that_reads_along_is_no_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers for the host that was named, under a certificate that nobody trusts."""
    with listening(ok(), Authority(tmp_path).serving("earshot.example")) as (port, heard):
        tunnel = Tunnel(port)
        monkeypatch.setenv("https_proxy", f"127.0.0.1:{tunnel.port}")
        with tunnel.open():
            assert "CERTIFICATE_VERIFY_FAILED" in refused("https://earshot.example")
        assert heard == []


def test_a_proxy_that_refuses_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with listening(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n") as (proxy, heard):
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy}")
        assert "Tunnel connection failed: 403 Forbidden" in refused("https://earshot.example")
        assert TOKEN.encode() not in b"".join(heard)


@pytest.mark.parametrize("first", [b"", b"HTTP/1.1 200 OK\r\n"])
def test_a_proxy_that_never_ends_is_cut_off(first: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator_client, "_DEADLINE", 0.2)
    with saying(drip(first, b"X: y\r\n" if first else b"x")) as proxy:
        monkeypatch.setenv("https_proxy", proxy)
        assert "takes too long" in refused("https://earshot.example")
        line = connection("https://earshot.example", None, 1.0)
        with pytest.raises(TimeoutError):
            connect(line, time.monotonic() + 0.1)
        assert line.sock is None, "what is sent over it would reach the proxy in clear"


@pytest.mark.parametrize("names", ["earshot.example", ".example", "*", "a.example,earshot.example"])
def test_who_is_named_by_no_proxy_is_reached_without_one(
    names: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    assert connection("https://earshot.example", None, 1.0).host == "proxy.example"
    monkeypatch.setenv("no_proxy", names)
    assert connection("https://earshot.example", None, 1.0).host == "earshot.example"


@pytest.mark.parametrize(
    "proxy",
    [
        "socks5h://u:secret@127.0.0.1:1080",
        "https://u:secret@p:1",
        "http://[::1",
        "http://",
        "http://a..b",
        f"http://{'a' * 64}",
    ],
)
def test_a_proxy_that_cannot_open_the_way_is_refused_by_name(
    proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", proxy)
    said = refused("https://earshot.example")
    assert said.startswith("https_proxy does not name an HTTP proxy")
    assert "no_proxy=earshot.example" in said
    assert "secret" not in said


# ---------------------------------------------------------------------------------------- elsewhere


@pytest.mark.parametrize("status", [300, 301, 302, 303, 307, 308])
@pytest.mark.parametrize("there", ["http://127.0.0.1:{}/", "//127.0.0.1:{}/", "http://evil\x1b[2J"])
def test_no_redirect_is_followed(status: int, there: str) -> None:
    with listening(ok()) as (other, heard):
        there = there.format(other)
        moved = f"HTTP/1.1 {status} Moved\r\nLocation: {there}\r\nContent-Length: 0\r\n\r\n"
        with listening(moved.encode()) as (port, asked):
            said = refused(f"http://127.0.0.1:{port}")
        assert f"leads to {there.replace(chr(27), '?')}, where the token was not sent" in said
        assert (len(asked), heard) == (1, [])


@pytest.mark.parametrize(
    "host",
    ["earshot.example", "192.0.2.1", "[2001:db8::1]", "localhost.example", "127.0.0.1.example",
     "0.0.0.0", "[::]", "127.1", "2130706433", "１２７.0.0.1", "localhost.", "10.0.0.1"],  # noqa: S104
)  # fmt: skip
def test_plain_http_leads_to_this_machine_alone(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "create_connection", lambda *_: pytest.fail("it connects"))
    assert "http is not encrypted, so others" in refused(f"http://{host}")


@pytest.mark.parametrize("host", ["2001:db8::1:8443", "2001:db8::1", "2001:db8::abcd", "fe80::1:2"])
def test_the_end_of_an_address_is_no_port(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the token would go to another host, such as 2001:db8::1, under that one's certificate."""
    line = connection(f"https://[{host}]", None, 1.0)
    assert (line.host, line.port) == (host, 443)
    monkeypatch.setenv("https_proxy", "http://[2001:db8::2:3128]")
    through = connection(f"https://[{host}]", None, 1.0)
    assert (through.host, through.port) == ("2001:db8::2:3128", 80)
    assert (through._tunnel_host, through._tunnel_port) == (host, 443)  # type: ignore[attr-defined]
    here = connection("http://[::1]", None, 1.0)
    assert (here.host, here.port) == ("::1", 80)


def test_a_localhost_that_is_elsewhere_hears_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no file says what `localhost` is, somebody's name server does."""

    class Elsewhere:
        def setsockopt(self, *_: object) -> None: ...
        def close(self) -> None: ...
        def getpeername(self) -> tuple[str, int]:
            return "192.0.2.1", 8000

    monkeypatch.setattr(socket, "create_connection", lambda *_: Elsewhere())
    assert "localhost leads to another machine, 192.0.2.1" in refused("http://localhost:8000")


@pytest.mark.parametrize(
    "server",
    ["127.0.0.1:8000", "ftp://127.0.0.1", "http://", "http://[::1", "http://exa mple",
     "http://127.0.0.1:port", "http://127.0.0.1:70000", "http://127.0.0.1/v1",
     "http://127.0.0.1?x=1", "http://127.0.0.1#x", "http://olga:pw@127.0.0.1",
     "http://@127.0.0.1", "http://127.0.0.1\n:1", "http://127.0.0.1:1\r\nX: y", "\thttp://127.0.0.1",
     "https://a..example", f"https://{'a' * 64}.example", "https://.example",
     "https://earshot.example\\@evil.example", "https://a@b@c", ""],
)  # fmt: skip
def test_what_is_no_address_of_a_server_is_said(server: str) -> None:
    assert "URL" in refused(server)


# ------------------------------------------------------------------------------------- who answers


STRANGERS: dict[str, tuple[bytes, str]] = {
    "another protocol": (b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", "SSH-2.0-OpenSSH"),
    "TLS": (b"\x15\x03\x01\x00\x02\x02\x16", "does not answer"),
    "nothing": (b"", "does not answer"),
    "half a body": (ok(b'{"phases":', length=500), "IncompleteRead"),
    "half a chunk": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{", "IncompleteRead"
    ),
    "half a head": (b"HTTP/1.1 200 OK\r\nContent-Ty", "sent an invalid response"),
    "no status": (b"HTTP/1.1 two hundred\r\n\r\n", "does not answer"),
    "no length": (b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "sent an invalid response"),
    "no chunks": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", "does not answer"
    ),
    "a long field": (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 70_000 + b"\r\n\r\n", "does not answer"),
    "many fields": (b"HTTP/1.1 200 OK\r\n" + b"X: a\r\n" * 200 + b"\r\n", "does not answer"),
    "a portal": (ok(b"<html>please log in</html>", "text/html"), "sent an invalid response"),
    "another kind": (ok(b'{"phones":[]}'), "sent an invalid response"),
    "compressed": (ok(gzip.compress(PHASES)), "sent an invalid response"),
    "latin": (b"HTTP/1.1 403 Verboten \xfc\r\nContent-Length: 0\r\n\r\n", "403 Verboten"),
    "a terminal's commands": (
        b"HTTP/1.1 500 \x1b[2J\r\nContent-Length: 0\r\n\r\n", "the server answered 500"
    ),
    "a problem of a terminal's commands": (
        ok(
            b'{"type":"x","title":"a\\u001b[2J\\nb","status":500,"detail":""}'
        ).replace(b"200 OK", b"500 X"),
        "a?[2J b",
    ),
    "an upgrade": (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", "sent an invalid response"),
}  # fmt: skip


@pytest.mark.parametrize(("answers", "said"), STRANGERS.values(), ids=STRANGERS)
def test_whatever_answers_is_said_in_a_line(answers: bytes, said: str) -> None:
    with listening(answers) as (port, _):
        assert said in refused(f"http://127.0.0.1:{port}")


def test_a_plain_server_asked_by_https_is_said() -> None:
    with listening(ok()) as (port, heard):
        assert "does not answer" in refused(f"https://127.0.0.1:{port}")
        assert TOKEN.encode() not in b"".join(heard)


def test_what_never_ends_is_not_read_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator_client, "_LARGEST", 1000)
    with listening(ok(b" " * 2000)) as (port, _):
        assert "more than 1000 bytes" in refused(f"http://127.0.0.1:{port}")
    monkeypatch.setattr(operator_client, "_DEADLINE", 0.2)
    until = threading.Event()
    with saying(lambda _: until.wait(PATIENCE) and None) as address:
        assert "takes too long" in refused(address)
        until.set()


# ---------------------------------------------------------------------------------------- the token


@pytest.mark.parametrize(
    "token",
    ["", "x", TOKEN + "x", f"“{TOKEN[:41]}”", TOKEN[:42] + "\r", TOKEN[:20] + "\r\nX: y" * 4],
)
def test_what_cannot_be_a_token_is_sent_to_nobody(
    token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "create_connection", lambda *_: pytest.fail("it connects"))
    said = refused("http://127.0.0.1:1", token)
    assert "43 letters, digits, - and _" in said
    assert token.strip() == "" or token not in said


@pytest.mark.parametrize(
    ("content", "whole"),
    [
        (TOKEN.encode() + b"  \r\n", True),
        (b"\n\t" + TOKEN.encode(), True),
        (b"\xef\xbb\xbf" + TOKEN.encode(), True),  # as some editors begin their files
        (TOKEN.encode("utf-16"), False),
        (b"\xff\xfe", False),
        (b"", False),
    ],
)
def test_space_about_a_token_is_none_of_it_in_a_file_or_a_variable(
    content: bytes, whole: bool, tmp_path: Path
) -> None:
    (tmp_path / TOKEN_FILE).write_bytes(content)
    with listening(ok(b'{"cohorts":[]}')) as (port, heard):
        words = ("phase", "cohorts", "--server", f"http://127.0.0.1:{port}", "--data", tmp_path)
        runs = [earshot(*words, **{TOKEN_VARIABLE: ""})]
        if (text := content.decode("utf-8", "replace")) and "\0" not in text:
            runs.append(earshot(*words, **{TOKEN_VARIABLE: text}))
    for run in runs:
        assert run.returncode == (0 if whole else 2), run.stderr
        assert whole or "operator's token, which has 43 letters" in run.stderr
        assert run.stderr.count("\n") == (0 if whole else 1)
    said = [line for head in heard for line in head.split(b"\r\n") if b"Authorization" in line]
    assert said == ([b"Authorization: Bearer " + TOKEN.encode()] * len(runs) if whole else [])


def test_phones_and_leaders_open_the_same_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """What this file shows of proxies and names holds for all: nothing else opens any."""
    opens = re.compile(r"urlopen|HTTPS?Connection\(|requests\b.*\bimport|create_connection")
    root = Path(__file__).parents[2]
    parts = ("protocol", "client", "server", "simulations/earshot_simulations", "deploy")
    found = {
        path.name
        for part in parts
        for path in (root / part).rglob("*.py")
        if opens.search(path.read_text("utf-8"))
    }
    # Ray's cluster is asked whether it is there, and told nothing.
    assert found == {"connecting.py", "cluster.py"}
    with pytest.raises(InvalidInputError, match="use https"):
        connection("http://earshot.example", None, 1.0)
