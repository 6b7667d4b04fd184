"""Checks of a request's line and header fields, before the application reads them.

The parser (llhttp) accepts a path of visible ASCII, names that are tokens, and values without
control characters other than tabs (RFC 9110, 5.5), and no folded lines. This module checks the
rest. The meaning and the authenticity of fields are for the application to check.
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
"""Details of the problems that are detected before a request reaches the application."""

_VERSIONS = ("1.0", "1.1")
_HOST = re.compile(
    rb"(\[[0-9A-Fa-f:.]+\]|(?:[A-Za-z0-9_~-]{1,63}\.)*[A-Za-z0-9_~-]{0,63})(:[0-9]{0,5})?"
)
"""An IPv6 address, an IPv4 address, or a name, with an optional port; or empty (RFC 9112, 3.2).

A label has at most 63 letters, and only the last may be empty (RFC 1034, 3.1): no URL can be built
from others.
"""


def fault(
    version: str, path: bytes, fields: Sequence[tuple[bytes, bytes]], patience: Patience
) -> ProblemKind | None:
    """Return the problem of a request's line and fields, which are complete; None if valid.

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
