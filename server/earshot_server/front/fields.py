"""Checks of a request's line and header fields, before the application reads them.

The parser (llhttp) takes a path of visible ASCII, names that are tokens, and values of anything but
control characters other than tabs (RFC 9110, 5.5), without folded lines. Here the rest is said.
What one field means, and who may say it, is for the application: a token that cannot be one, in
whatever letters, is nobody's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from earshot_server.api.problems import BAD_REQUEST, FIELDS_TOO_LARGE, VERSION, ProblemKind
from earshot_server.front.connections import Patience

DETAILS = {
    BAD_REQUEST: "not an HTTP/1.1 request with one Host field, which is a name or an address and "
    "perhaps a port, no control character, and no transfer coding but chunked",
    FIELDS_TOO_LARGE: "there are more fields, or longer ones, than any request needs",
    VERSION: "use HTTP/1.1",
}
"""Details of the problems that are found before the application sees a request."""

_VERSIONS = ("1.0", "1.1")
_HOST = re.compile(
    rb"(\[[0-9A-Fa-f:.]+\]|(?:[A-Za-z0-9_~-]{1,63}\.)*[A-Za-z0-9_~-]{0,63})(:[0-9]{0,5})?"
)
"""An address of IPv6, one of IPv4, or a name; empty for none (RFC 9112, 3.2).

A label has at most 63 letters, and only the last may have none (RFC 1034, 3.1): no URL is made for
another.
"""


def fault(
    version: str, path: bytes, fields: Sequence[tuple[bytes, bytes]], patience: Patience
) -> ProblemKind | None:
    """Return what is wrong with a request's line and fields, which are complete; None if nothing.

    Args:
        version: Version of HTTP.
        path: Path of the request, with its query.
        fields: Names in lower case, and values.
        patience: Limits on their size.
    """
    size = len(path) + sum(len(name) + len(value) for name, value in fields)
    if size > patience.field_bytes:
        return FIELDS_TOO_LARGE
    if version not in _VERSIONS:
        return VERSION
    hosts, codings = (
        [value for name, value in fields if name == wanted]
        for wanted in (b"host", b"transfer-encoding")
    )
    if len(hosts) > 1 or (not hosts and version == "1.1"):
        return BAD_REQUEST
    if hosts and not _HOST.fullmatch(hosts[0]):
        return BAD_REQUEST
    if codings and [each.strip().lower() for each in codings] != [b"chunked"]:
        return BAD_REQUEST
    return None
