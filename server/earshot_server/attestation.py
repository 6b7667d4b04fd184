"""Attestation: which phones may enrol.

A phone that enrols sends an attestation, which the server checks with an `Attestation`. The
default, `InvitationCodes`, accepts codes that the operator signed and distributed.

A platform's attestation (Android's key attestation, Apple's App Attest) would be another
implementation of the protocol, passed in the API's settings: its `check` verifies the platform's
certificate chain up to the platform's root, and that the attested key is `public_key`, and returns
an `Admission` whose `invitation` is a 16-byte identifier of the device (a hash of the platform's
statement about it) with `uses=1`, so that one device is one phone. It needs the platforms' root
certificates and revocation lists, which belong to the deployment.
"""

from __future__ import annotations

import base64
import binascii
import os
import struct
from dataclasses import dataclass
from typing import Protocol

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from earshot_protocol.api import Invitation, Invite
from earshot_protocol.errors import RemoteError
from earshot_protocol.overriding import override

_CODE = struct.Struct(">16sQQ")
"""Identifier, uses and expiry in seconds since 1970; the cohort's name follows, if there is one."""
_SIGNATURE_BYTES = 64
_PURPOSE = b"earshot invitation\x00"
"""Prefix of every signed message, for domain separation."""


class InvitationError(RemoteError):
    """The invitation, or another attestation, is forged, damaged, expired, revoked or unknown."""


@dataclass(frozen=True)
class Admission:
    """Entitlement that an attestation gives.

    Attributes:
        invitation: Identifier of the attestation, 16 bytes, the same for all phones that it admits.
        uses: Most phones that the attestation admits.
        cohort: Cohort of the admitted phones; empty for none.
        listed: Whether the attestation must be listed, and not revoked, as invitation codes are.
    """

    invitation: bytes
    uses: int
    cohort: str = ""
    listed: bool = False


class Attestation(Protocol):
    """Check of attestations: decides which phones may enrol."""

    def check(self, attestation: str, public_key: bytes, now: float) -> Admission:
        """Return the entitlement that the attestation gives the holder of the key.

        Args:
            attestation: Attestation as the phone sent it.
            public_key: The phone's Ed25519 public key, 32 bytes; the request was signed with it.
            now: Present time, in seconds since 1970.

        Raises:
            InvitationError: The attestation is forged, damaged or expired.
        """


class InvitationCodes(Attestation):
    """Codes that this server signed; each enrols as many phones as it has uses.

    A code admits any key.

    Args:
        key: Key that signs and verifies the codes.
    """

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self._verifier = key.public_key()

    def issue(self, invite: Invite, now: float) -> Invitation:
        """Sign a new code, with the name asked for or else one of its own."""
        expires = int(now + invite.days * 86_400.0)
        invitation = os.urandom(16)
        body = _CODE.pack(invitation, invite.uses, expires) + invite.cohort.encode("ascii")
        code = base64.urlsafe_b64encode(body + self._key.sign(_PURPOSE + body))
        return Invitation(
            code=code.decode(),
            uses=invite.uses,
            expires=float(expires),
            cohort=invite.cohort,
            name=invite.name or invitation.hex()[:12],
        )

    @override
    def check(self, attestation: str, public_key: bytes, now: float) -> Admission:
        try:
            signed = base64.b64decode(attestation.encode("ascii"), b"-_", validate=True)
            body, signature = signed[:-_SIGNATURE_BYTES], signed[-_SIGNATURE_BYTES:]
            self._verifier.verify(signature, _PURPOSE + body)
            invitation, uses, expires = _CODE.unpack_from(body)
            cohort = body[_CODE.size :].decode("ascii")
        except (UnicodeError, binascii.Error, InvalidSignature, struct.error) as error:
            raise InvitationError("not an invitation code of this server") from error
        if now >= expires:
            raise InvitationError("this invitation has expired: ask for a new one")
        return Admission(invitation, uses, cohort, listed=True)
