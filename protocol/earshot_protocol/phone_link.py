"""Invitation of a phone in a browser: its settings, in the fragment of the page's address.

Browsers do not send a fragment to the server of the page. It identifies the two operators: a phone
takes their keys from the link, never from a server.
"""

from __future__ import annotations

import base64
from typing import Annotated

import msgspec

from earshot_protocol.connecting import connection
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.text import line
from earshot_protocol.wire import PublicKey, canonical

PREFIX = "earshot1."
"""Beginning of a fragment; the digit is the format's version."""
LARGEST_FRAGMENT = 2048
"""Most characters of a fragment, its beginning included: they fit a QR code easily."""


class PhoneLink(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Invitation of a phone in a browser.

    Attributes:
        server: URL of the server as phones reach it, without a path.
        invitation: Invitation code, or another attestation that the server requires.
        leader: Identity of the server as the leader of sums by two operators, an Ed25519 key.
        helper: Identity of the helper of these sums, an Ed25519 key.
    """

    server: Annotated[str, line(256, least=1)]
    invitation: Annotated[str, line(1024, least=1)]
    leader: PublicKey
    helper: PublicKey

    def fragment(self) -> str:
        """Return the fragment of the page's address, without its `#`.

        Raises:
            InvalidInputError: It cannot be made: the server's URL is not one that a phone accepts,
                a part is too long, or leader and helper are the same.
        """
        connection(self.server, None, 1.0)
        if self.server.endswith("/"):
            raise InvalidInputError(f"{self.server!r} ends in a slash; leave it out")
        if self.leader == self.helper:
            raise InvalidInputError("leader and helper have the same key; they must differ")
        written = base64.urlsafe_b64encode(canonical(self)).decode().rstrip("=")
        if len(PREFIX + written) > LARGEST_FRAGMENT:
            raise InvalidInputError(
                f"the invitation takes {len(PREFIX + written)} characters of a link; at most "
                f"{LARGEST_FRAGMENT} are accepted"
            )
        return PREFIX + written
