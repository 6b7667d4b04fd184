"""Signatures of a phone's requests: one profile of HTTP Message Signatures (RFC 9421).

Every request of a phone is a POST that covers its method, path, content type and content digest
(RFC 9530) with an Ed25519 signature, whose parameters are `created` (seconds since 1970), `keyid`
and `alg`. There is no nonce: a request that is replayed changes nothing, because answers are
idempotent, and within `LARGEST_SKEW` its response reveals no more than the first one.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from earshot_protocol.errors import UnexpectedMessageError

LARGEST_SKEW = 300
"""Most seconds by which `created` may differ from the verifier's clock."""

_LABEL = "earshot"
_COVERED = '("@method" "@path" "content-type" "content-digest")'
KEY_ID = r"[A-Za-z0-9_-]{1,64}"
"""Pattern of the name under which a verifier knows a key."""
_INPUT = re.compile(
    re.escape(f"{_LABEL}={_COVERED}")
    + rf';created=([0-9]{{1,12}});keyid="({KEY_ID})";alg="ed25519"'
)
_SIGNATURE = re.compile(rf"{_LABEL}=:([A-Za-z0-9+/]{{85}}[AQgw]==):")


class SignatureError(UnexpectedMessageError):
    """A missing or wrong signature of a request; the message states at most the right format."""


class StaleSignatureError(SignatureError):
    """A request that was signed too long ago or in the future; its phone's clock may be wrong."""


def content_digest(body: bytes) -> str:
    """Return the field `Content-Digest` of a body (RFC 9530)."""
    return f"sha-256=:{base64.b64encode(hashlib.sha256(body).digest()).decode()}:"


def sign(
    key: Ed25519PrivateKey, key_id: str, created: int, path: str, content_type: str, body: bytes
) -> dict[str, str]:
    """Return the fields that sign a POST request.

    Args:
        key: Signing key of the phone.
        key_id: Name under which the verifier knows the key.
        created: Time of signing, in seconds since 1970.
        path: Path of the request, with the leading slash and without a query.
        content_type: Field `Content-Type` of the request, exactly as sent.
        body: Body of the request, as sent.

    Returns:
        The fields `Content-Digest`, `Signature-Input` and `Signature`.
    """
    digest = content_digest(body)
    parameters = f'{_COVERED};created={created};keyid="{key_id}";alg="ed25519"'
    signature = key.sign(_base(path, content_type, digest, parameters))
    return {
        "Content-Digest": digest,
        "Signature-Input": f"{_LABEL}={parameters}",
        "Signature": f"{_LABEL}=:{base64.b64encode(signature).decode()}:",
    }


def key_id_of(fields: Mapping[str, str]) -> str:
    """Return the name under which the signer's key is known.

    Raises:
        SignatureError: The field `Signature-Input` is missing or of another profile.
    """
    return _parse(fields)[1]


def verify_body(fields: Mapping[str, str], body: bytes) -> None:
    """Check that a body is the one whose digest was signed.

    Args:
        fields: Fields of the request.
        body: Body of the request, as received.

    Raises:
        SignatureError: The body is another one.
    """
    digest = fields.get("Content-Digest", "")
    if not hmac.compare_digest(digest.encode(), content_digest(body).encode()):
        raise SignatureError("Content-Digest is not the SHA-256 of the body")


def verify_fields(
    key: bytes, fields: Mapping[str, str], now: float, path: str, content_type: str
) -> None:
    """Check the signature of a POST request before its body has arrived.

    Args:
        key: Ed25519 public key of the signer, 32 bytes.
        fields: Fields of the request; names match in any case if the mapping ignores case.
        now: Time on the verifier's clock, in seconds since 1970.
        path: Path of the request, as received.
        content_type: Field `Content-Type` of the request, as received.

    Raises:
        StaleSignatureError: The request was signed more than `LARGEST_SKEW` seconds ago or ahead.
        SignatureError: A field is missing or malformed, or the signature does not fit.
    """
    created, _, parameters = _parse(fields)
    digest = fields.get("Content-Digest", "")
    matched = _SIGNATURE.fullmatch(fields.get("Signature", ""))
    if matched is None:
        raise SignatureError(f"Signature must be {_LABEL}=:64 bytes in base64:")
    try:
        signature = base64.b64decode(matched[1], validate=True)
        Ed25519PublicKey.from_public_bytes(key).verify(
            signature, _base(path, content_type, digest, parameters)
        )
    except (binascii.Error, ValueError, InvalidSignature) as error:
        raise SignatureError("the signature does not fit the request and its key") from error
    # Checked last, so that only the holder of the key learns the clock's reading.
    if abs(now - created) > LARGEST_SKEW:
        raise StaleSignatureError(
            f"signed at {created}, but the time here is {now:.0f}: they must be at most "
            f"{LARGEST_SKEW} seconds apart"
        )


def _parse(fields: Mapping[str, str]) -> tuple[int, str, str]:
    given = fields.get("Signature-Input", "")
    matched = _INPUT.fullmatch(given)
    if matched is None:
        raise SignatureError(
            f'Signature-Input must be {_LABEL}={_COVERED};created=…;keyid="…";alg="ed25519"'
        )
    return int(matched[1]), matched[2], given[len(_LABEL) + 1 :]


def _base(path: str, content_type: str, digest: str, parameters: str) -> bytes:
    """Return the signature base (RFC 9421, section 2.5)."""
    lines = (
        '"@method": POST',
        f'"@path": {path}',
        f'"content-type": {content_type}',
        f'"content-digest": {digest}',
        f'"@signature-params": {parameters}',
    )
    return "\n".join(lines).encode()
