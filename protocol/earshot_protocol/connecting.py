"""Connections to a server by its URL; all programs of Earshot open theirs here.

Requests must reach only the host that the URL names. Hence connections use https, or stay on this
machine; redirects are not followed; and a proxy of the environment (`https_proxy`, `no_proxy`)
tunnels https and sees only the name of the host.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from earshot_protocol.api import LARGEST_SMALL_BODY
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.overriding import override


def connection(
    server: str, tls: ssl.SSLContext | None, timeout: float
) -> http.client.HTTPConnection:
    """Return a connection to a server; the first request opens it.

    Args:
        server: URL of the server, https; http is accepted for this machine's own addresses only.
        tls: Settings that authenticate the server; by default the system's trusted certificates.
        timeout: Timeout of each network operation, in seconds.

    Raises:
        InvalidInputError: This is not the URL of a server, or `https_proxy` in the environment is
            not the URL of an HTTP proxy.
    """
    try:
        url = urlsplit(server)
        host, given = url.hostname, url.port
        (host or "").encode("idna")  # as it is looked up
    except ValueError as error:
        raise InvalidInputError(f"{server!r} is not a URL: {error}") from error
    # Signatures cover the path as it is sent, so the URL must not add to the request's.
    more = url.path.removeprefix("/") or url.query or url.fragment or "@" in url.netloc
    unseen = [letter for letter in server if letter.isspace() or not letter.isprintable()]
    if not host or url.scheme not in ("http", "https") or more or unseen:
        raise InvalidInputError(
            f"{server!r} is not the URL of a server, such as https://example.org or "
            "http://127.0.0.1:8000"
        )
    # Without a port, http.client parses the host for one and takes the end of an IPv6 address.
    usual = http.client.HTTPS_PORT if url.scheme == "https" else http.client.HTTP_PORT
    port = usual if given is None else given
    if url.scheme == "https":
        return _encrypted(host, port, tls or ssl.create_default_context(), timeout)
    if not is_this_machine(host):
        raise InvalidInputError(
            f"{server}: http is not encrypted, so others on the network can read it; use https"
        )
    return _Within(host, port, timeout=timeout)


class _Within(http.client.HTTPConnection):
    """Connection that refuses any peer but this machine, whatever `localhost` resolves to."""

    @override
    def connect(self) -> None:
        super().connect()
        there = self.sock.getpeername()[0]
        if not is_this_machine(there):
            self.close()
            raise OSError(f"{self.host} leads to another machine, {there}; use https")


def _encrypted(
    host: str, port: int, tls: ssl.SSLContext, timeout: float
) -> http.client.HTTPSConnection:
    """Return a connection by https, through the proxy of the environment if it names one."""
    given = getproxies().get("https", "")
    if not given or is_this_machine(host) or proxy_bypass(host):
        return http.client.HTTPSConnection(host, port, timeout=timeout, context=tls)
    try:
        proxy = urlsplit(given if "://" in given else f"http://{given}")
        name, at = proxy.hostname, proxy.port
        (name or "").encode("idna")
    except ValueError:
        name, at = None, None
    if not name or proxy.scheme != "http":  # not quoted: it may hold a password
        raise InvalidInputError(
            f"https_proxy does not name an HTTP proxy, such as http://proxy.example:3128: change "
            f"it, or set no_proxy={host} to reach {host} without one"
        )
    fields = {}
    if proxy.username is not None:
        user = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
        fields["Proxy-Authorization"] = f"Basic {base64.b64encode(user.encode()).decode()}"
    tunnelled = http.client.HTTPSConnection(name, at or 80, timeout=timeout, context=tls)
    tunnelled.set_tunnel(host, port, fields)
    return tunnelled


def exchange(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: bytes | None,
    fields: Mapping[str, str],
    limit: int,
    until: float,
) -> tuple[http.client.HTTPResponse, bytes]:
    """Send a request and read its response, whatever its status; redirects are not followed.

    Args:
        connection: Connection to the server; it is closed if the response is not read to its end.
        method: Method of the request.
        path: Path of the request, with its query.
        body: Body of the request, if it has one.
        fields: Header fields of the request.
        limit: Most bytes of a successful response; at most one more is read.
        until: Deadline of the exchange, as a reading of `time.monotonic`.

    Returns:
        The response and its content; of an error at most `LARGEST_SMALL_BODY` bytes and one more.

    Raises:
        OSError: The server cannot be reached, or takes too long.
        http.client.HTTPException: The response is not HTTP, or is cut off.
    """
    connected = connect(connection, until)
    with cut_off(lambda: connected, until):
        connection.request(method, path, body, dict(fields))
        try:
            with connection.getresponse() as response:
                largest = limit if 200 <= response.status < 300 else LARGEST_SMALL_BODY
                content = response.read(largest + 1)
                has_more = not response.isclosed()
        except ValueError as error:  # http.client raises it, for example for negative lengths
            raise http.client.HTTPException(f"not HTTP: {error}") from error
    if len(content) <= largest and response.length:
        raise http.client.IncompleteRead(content, response.length)
    if has_more:  # the rest would precede the next response
        connection.close()
    return response, content


def connect(connection: http.client.HTTPConnection, until: float) -> socket.socket:
    """Open a connection, unless it is open, and return its socket.

    Args:
        connection: Connection to the server; it is closed if opening fails: a half-open one would
            send requests to the proxy without TLS.
        until: Deadline, as a reading of `time.monotonic`.

    Raises:
        OSError: The server cannot be reached, or takes too long.
        http.client.HTTPException: The proxy's response is not HTTP.
    """
    if connection.sock is None:
        try:
            with cut_off(lambda: connection.sock, until):
                connection.connect()
        except BaseException:
            connection.close()
            raise
    return connection.sock


@contextlib.contextmanager
def cut_off(connected: Callable[[], socket.socket | None], until: float) -> Iterator[None]:
    """Close a connection at a deadline, so that a slow or endless peer cannot block its reader.

    Args:
        connected: Function that returns the socket used within the block; None if not yet open.
        until: Deadline of the block, as a reading of `time.monotonic`.

    Raises:
        TimeoutError: The deadline passed before the block ended.
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


def _end(connected: Callable[[], socket.socket | None]) -> None:
    there = connected()
    if there is not None:
        with contextlib.suppress(OSError):  # already closed
            # That of SSLSocket would drop the TLS state that the reader still uses.
            socket.socket.shutdown(there, socket.SHUT_RDWR)


def is_this_machine(host: str) -> bool:
    """Return whether a host is this machine, whose traffic leaves no network interface."""
    if host == "localhost":
        return True
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False
