"""Links that invite phones in browsers, and their QR codes."""

from __future__ import annotations

import io

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.phone_link import PhoneLink


def link_to(page: str, server: str, invitation: str, leader: str, helper: str) -> str:
    """Return the link to a page that holds a phone, with invitation, server and keys.

    Args:
        page: URL of the page, as `origins.read_page` returns it.
        server: URL of the server as phones reach it.
        invitation: Invitation code.
        leader: Key of the server as the leader of sums, in hexadecimal; empty without a helper.
        helper: Key of the helper, in hexadecimal; empty without one.

    Raises:
        InvalidInputError: The server has no helper, so a phone in a browser could not take part in
            any phase; or a part of the link is invalid.
    """
    if not (leader and helper):
        raise InvalidInputError(
            "a phone in a browser takes part only in sums by two operators, and this server has no "
            "helper: start it with --helper and --helper-key"
        )
    invited = PhoneLink(
        server=server.removesuffix("/"),
        invitation=invitation,
        leader=bytes.fromhex(leader),
        helper=bytes.fromhex(helper),
    )
    return f"{page}#{invited.fragment()}"


def drawn(text: str) -> str:
    """Return a QR code as an SVG element without style, for embedding in a page."""
    import segno

    code = segno.make_qr(text, error="l")
    shown: str = code.svg_inline(
        dark="#000", light="#fff", svgclass=None, lineclass=None, omitsize=True
    )
    return shown


def printed(text: str) -> str:
    """Return a QR code in block characters for terminals, two rows per line."""
    import segno

    lines = io.StringIO()
    segno.make_qr(text, error="l").terminal(lines, compact=True)
    return lines.getvalue()
