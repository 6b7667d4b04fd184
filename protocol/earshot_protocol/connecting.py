"""Connections to a server by its URL, for a phone and for the leader of a sum by two operators."""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

from earshot_protocol.errors import InvalidInputError


def connection(
    server: str, tls: ssl.SSLContext | None, timeout: float
) -> http.client.HTTPConnection:
    """Return a connection to a server, which is made with the first request.

    Args:
        server: URL of the server, https; http is accepted for this machine's own addresses only.
        tls: Settings by which the server is authenticated; by default the certificates that the
            system trusts.
        timeout: Seconds for which the network may stand still.

    Raises:
        InvalidInputError: This is not the URL of a server.
    """
    try:
        url = urlsplit(server)
        host, port = url.hostname, url.port
    except ValueError as error:
        raise InvalidInputError(f"{server!r} is not a URL: {error}") from error
    # Signatures cover the path as it is sent, which is that of the request alone.
    more = url.path.removeprefix("/") or url.query or url.fragment or url.username
    if not host or url.scheme not in ("http", "https") or more:
        raise InvalidInputError(
            f"{server!r} is not the URL of a server, such as https://example.org"
        )
    if url.scheme == "https":
        context = tls or ssl.create_default_context()
        return http.client.HTTPSConnection(host, port, timeout=timeout, context=context)
    if not is_this_machine(host):
        raise InvalidInputError(
            f"{server}: http shows what is sent to everybody on the way; use https"
        )
    return http.client.HTTPConnection(host, port, timeout=timeout)


@contextlib.contextmanager
def cut_off(connected: socket.socket, until: float) -> Iterator[None]:
    """End a connection when the time is over: what comes byte by byte, or never ends, keeps nobody.

    Args:
        connected: Socket that is used within the block.
        until: Reading of `time.monotonic` at which the block has to be over.

    Raises:
        TimeoutError: The time was over before the block was.
    """
    end = threading.Timer(until - time.monotonic(), _end, (connected,))
    end.daemon = True
    end.start()
    try:
        yield
    except (OSError, http.client.HTTPException):
        if time.monotonic() < until:
            raise
    finally:
        end.cancel()
    if time.monotonic() >= until:
        raise TimeoutError("the answer takes too long")


def _end(connected: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it has ended by itself
        # TLS's own would take from the reader what it reads with.
        socket.socket.shutdown(connected, socket.SHUT_RDWR)


def is_this_machine(host: str) -> bool:
    """Return whether a host is this machine, which nobody listens in on from outside."""
    if host == "localhost":
        return True
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False
