"""Sender and scheme of a request behind reverse proxies, from their header fields.

Each proxy appends to `X-Forwarded-For` the address of its client. Of N proxies the outermost one
therefore wrote the N-th entry from the end; the client may have written any before it.
`X-Forwarded-Proto` is one value, which the outermost proxy sets and the others pass on; if each
proxy appends one, the N-th from the end counts again. Any other number of values is ignored, as the
client may have written some. RFC 7239's `Forwarded` is not read.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication

_ENTRY = re.compile(
    r'"?(?:\[([0-9a-f:.]+)(?:%[^]"]*)?\]|([0-9.]+))(?::[0-9]{1,5})?"?', re.ASCII | re.IGNORECASE
)
"""An IPv6 address in brackets or an IPv4 address, with an optional port and optional quotes."""


class BehindProxies:
    """WSGI middleware that restores a request's sender and scheme as the outermost proxy saw them.

    Args:
        app: Application that answers.
        proxies: Number of reverse proxies before the server, each adding to X-Forwarded-For.
    """

    def __init__(self, app: WSGIApplication, proxies: int) -> None:
        self._app = app
        self._proxies = proxies

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        # Without an address from the proxies, the nearest proxy's own counts towards the limits.
        address = read_address(environ.get("REMOTE_ADDR", ""))
        if self._proxies:
            addresses = environ.get("HTTP_X_FORWARDED_FOR", "").split(",")
            if len(addresses) >= self._proxies:
                address = read_address(addresses[-self._proxies]) or address
            words = environ.get("HTTP_X_FORWARDED_PROTO", "").split(",")
            if len(words) == 1 or len(words) >= self._proxies:
                word = words[-min(len(words), self._proxies)].strip().lower()
                if word in ("http", "https"):
                    environ["wsgi.url_scheme"] = word
        if address is not None:
            environ["REMOTE_ADDR"] = str(address)
        return self._app(environ, start_response)


def read_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Parse an address as a socket or a proxy writes it; None if it is invalid.

    Azure's gateways and IIS append a port, which differs for each connection of one client. An
    IPv6 socket reports an IPv4 address as an IPv4-mapped one, which is unmapped.
    """
    text = text.strip()
    written = _ENTRY.fullmatch(text)
    bare = written[1] or written[2] if written else text.partition("%")[0]
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
