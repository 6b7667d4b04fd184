"""A server below HTTP, which says what no honest one does: too much, too slowly, or for ever."""

from __future__ import annotations

import contextlib
import itertools
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator

from support.listening import PATIENCE

Say = Callable[[socket.socket], None]
"""What a server does with a connection on which it has read a request."""


@contextlib.contextmanager
def saying(say: Say, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """A server that answers every connection so; its address."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        if tls is not None:
            listener = stack.enter_context(tls.wrap_socket(listener, server_side=True))
        ended, accepted = threading.Event(), list[socket.socket]()

        def serve() -> None:
            while not ended.is_set():
                with contextlib.suppress(OSError):
                    connection, _ = listener.accept()
                    accepted.append(connection)
                    with connection:
                        if ended.is_set():
                            return
                        connection.settimeout(PATIENCE)
                        read_request(connection)
                        say(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http{'s' if tls else ''}://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            ended.set()
            for each in (listener, *accepted):  # a client may have kept its end
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            thread.join()


@contextlib.contextmanager
def listening(
    answers: bytes, tls: ssl.SSLContext | None = None
) -> Iterator[tuple[int, list[bytes]]]:
    """A server's port, and what it has heard: it keeps the head of each request, and answers so."""
    heard: list[bytes] = []
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        if tls is not None:
            listener = stack.enter_context(tls.wrap_socket(listener, server_side=True))
        over = threading.Event()

        def serve() -> None:
            while not over.is_set():
                with contextlib.suppress(OSError):
                    accepted, _ = listener.accept()
                    with accepted:
                        accepted.settimeout(PATIENCE)
                        heard.append(accepted.recv(65_536))
                        accepted.sendall(answers)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1], heard
        finally:
            over.set()
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def read_request(connection: socket.socket) -> None:
    with connection.makefile("rb") as lines:
        fields = dict(
            line.decode().lower().rstrip().partition(": ")[::2]
            for line in itertools.takewhile(lambda line: line.strip(), lines)
        )
        lines.read(int(fields.get("content-length", "0")))  # who has gone has sent none


def ok(*fields: str) -> bytes:
    kind = "Content-Type: application/msgpack"
    return "\r\n".join(["HTTP/1.1 200 OK", kind, *fields, "", ""]).encode()


def drip(first: bytes, again: bytes) -> Say:
    def say(connection: socket.socket) -> None:
        connection.sendall(first)
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            connection.sendall(again)
            time.sleep(0.01)

    return say


DRIPS: dict[str, Say] = {
    "body": drip(ok("Content-Length: 60000"), b"x"),
    "chunks": drip(ok("Transfer-Encoding: chunked"), b"1\r\nx\r\n"),
    "to the end": drip(ok("Connection: close"), b"x"),
    "field": drip(b"HTTP/1.1 200 OK\r\nX: ", b"x"),
    "continue": drip(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "trailer": drip(ok("Transfer-Encoding: chunked") + b"0\r\n", b"x: y\r\n"),
}
"""Responses that never end, by kind: the network never stands still, so no socket times out."""
