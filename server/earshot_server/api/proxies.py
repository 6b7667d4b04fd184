"""What reverse proxies report of a request: its sender, and whether it came by https.

Each proxy adds to `X-Forwarded-For` the address from which it was asked. So of N proxies the one
that clients reach wrote the N-th entry from the end, and all before it is the client's own word.
`X-Forwarded-Proto` is one word, which that proxy sets and the others pass on or repeat; where each
proxy adds a word of its own, the N-th from the end counts again. Other numbers of words tell
nothing: one of them may be the client's. RFC 7239's `Forwarded` is not read.
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
"""An address in brackets, or one of IPv4, and perhaps a port, perhaps in quotes."""


class BehindProxies:
    """Application whose requests are those that clients sent to the outermost of its proxies.

    Args:
        app: Application that answers.
        proxies: Number of reverse proxies before the server, each adding to X-Forwarded-For.
    """

    def __init__(self, app: WSGIApplication, proxies: int) -> None:
        self._app = app
        self._proxies = proxies

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        # Where nobody says an address, that of the nearest proxy is counted, and no limit is void.
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
    """Return the address that a socket or a proxy writes; None if it is none.

    Azure's gateways and IIS write a port behind it, which is another for each connection of one
    client. A socket of IPv6 writes an address of IPv4 as one of IPv6.
    """
    text = text.strip()
    written = _ENTRY.fullmatch(text)
    bare = written[1] or written[2] if written else text.partition("%")[0]
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
