"""Vectors of the links by which phones in browsers are invited."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import msgspec
from scripted import drawn

from earshot_protocol.phone_link import LARGEST_FRAGMENT, PREFIX, PhoneLink
from earshot_protocol.wire import canonical

Vector = dict[str, Any]
_LINK = PhoneLink(
    server="https://earshot.example.org",
    invitation=base64.urlsafe_b64encode(drawn("invitation code", 101)).decode(),
    leader=drawn("leader of a link", 32),
    helper=drawn("helper of a link", 32),
)


def link_vectors() -> Vector:
    """Return invitations with the fragments that carry them, and fragments that are refused."""
    links = (
        _LINK,
        msgspec.structs.replace(_LINK, server="http://localhost:8000", invitation="ä"),
        msgspec.structs.replace(_LINK, server="https://[2001:db8::1]:8443"),
    )
    return {
        "links": [
            {
                "server": link.server,
                "invitation": link.invitation,
                "leader": link.leader.hex(),
                "helper": link.helper.hex(),
                "map": canonical(link).hex(),
                "fragment": link.fragment(),
            }
            for link in links
        ],
        "refused": [{"why": why, "fragment": fragment} for why, fragment in _refused()],
    }


def _written(**fields: Any) -> str:
    """Return the fragment of other fields, in order of their names; None leaves one out."""
    kept = msgspec.to_builtins(_LINK, builtin_types=(bytes,)) | fields
    return _packed({name: kept[name] for name in sorted(kept) if kept[name] is not None})


def _packed(fields: Vector) -> str:
    return _encoded(msgspec.msgpack.encode(fields))


def _encoded(data: bytes) -> str:
    return PREFIX + base64.urlsafe_b64encode(data).decode().rstrip("=")


def _refused() -> Iterator[tuple[str, str]]:
    data, good = canonical(_LINK), _LINK.fragment()
    names = msgspec.to_builtins(_LINK, builtin_types=(bytes,))
    yield "nothing", ""
    yield "nothing but the beginning", PREFIX
    yield "another version", good.replace(PREFIX, "earshot2.")
    yield "without a version", good.removeprefix(PREFIX)
    yield "padded", good + "=" * (-len(good.removeprefix(PREFIX)) % 4 or 4)
    yield "of another alphabet", good[:-1] + "+"
    yield "with a space", good + " "
    yield "cut off", good[:-2]
    yield "bits are left over", _with_bits_left()
    yield "a byte follows", _encoded(data + b"\xc0")
    yield "names in another order", _packed(dict(sorted(names.items(), reverse=True)))
    yield "a header that is longer than needed", _encoded(b"\xde\x00\x04" + data[1:])
    yield "a name that stands twice", _encoded(b"\x85" + data[1:] + data[1:42])
    yield "a field that there is not", _written(zone="a")
    yield "no helper", _written(helper=None)
    yield "a key of 31 bytes", _written(leader=bytes(31))
    yield "a key in text", _written(leader="a" * 32)
    yield "leader and helper are the same", _written(helper=_LINK.leader)
    yield "a server without TLS", _written(server="http://earshot.example.org")
    yield "a server of another scheme", _written(server="ftp://earshot.example.org")
    yield "a server with a path", _written(server="https://earshot.example.org/v1")
    yield "a server with a slash", _written(server="https://earshot.example.org/")
    yield "a server with a name before it", _written(server="https://a@earshot.example.org")
    yield "no server", _written(server="")
    yield "no code", _written(invitation="")
    yield "a code with a line break", _written(invitation="a\nb")
    yield "a code of 1,025 letters", _written(invitation="a" * 1025)
    yield "longer than 2,048", _written(invitation="ä" * 1000)
    if len(_written(invitation="ä" * 1000)) <= LARGEST_FRAGMENT:
        raise ValueError("the last one is not too long")


def _with_bits_left() -> str:
    """Return a fragment whose last letter has bits that stand for nothing."""
    for more in range(3):
        link = msgspec.structs.replace(_LINK, invitation="a" * (10 + more))
        written = link.fragment()
        if len(written.removeprefix(PREFIX)) % 4:
            letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
            return written[:-1] + letters[letters.index(written[-1]) + 1]
    raise ValueError("every length fills its letters")
