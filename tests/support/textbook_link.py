"""A reader of links to phones in browsers, written from docs/protocol.md alone."""

from __future__ import annotations

import base64
import re
from typing import Any

from support import textbook_phone as textbook

LOCAL = re.compile(r"localhost|127(\.\d{1,3}){3}|\[::1\]")
SERVER = re.compile(r"(https?)://(\[[0-9A-Fa-f:.]+\]|[^/?#@:\[\]\s]+)(:\d{1,5})?")
UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class NoLinkError(Exception):
    """A fragment is not an invitation; says why."""


def require(condition: object, why: str) -> None:
    if not condition:
        raise NoLinkError(why)


def read(fragment: str) -> dict[str, Any]:
    """What a phone in a browser is told."""
    require(len(fragment) <= 2048, "length")
    require(fragment.startswith("earshot1."), "version")
    written = fragment.removeprefix("earshot1.")
    require(re.fullmatch(r"[A-Za-z0-9_-]+", written), "alphabet")
    require(len(written) % 4 != 1, "a letter too many")
    data = base64.urlsafe_b64decode(written + "=" * (-len(written) % 4))
    require(base64.urlsafe_b64encode(data).decode().rstrip("=") == written, "bits left over")
    try:
        fields = textbook.unpacked(data)
    except (AssertionError, IndexError, ValueError, StopIteration):
        raise NoLinkError("not MessagePack") from None
    require(isinstance(fields, dict), "map")
    require(list(fields) == ["helper", "invitation", "leader", "server"], "fields")
    require(textbook.packed(fields) == data, "another form")
    for name, longest in (("server", 256), ("invitation", 1024)):
        text = fields[name]
        require(isinstance(text, str) and 1 <= len(text) <= longest, name)
        require(not UNSEEN.search(text), name)
    for name in ("leader", "helper"):
        require(isinstance(fields[name], bytes) and len(fields[name]) == 32, name)
    require(fields["leader"] != fields["helper"], "one operator")
    server = SERVER.fullmatch(fields["server"])
    require(server, "server")
    assert server is not None
    require(server[1] == "https" or LOCAL.fullmatch(server[2]), "without TLS")
    return fields
