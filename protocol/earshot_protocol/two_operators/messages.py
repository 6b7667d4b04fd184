"""The messages of a sum by two operators: an offer, a phone's report, and a total.

The leader requests an offer from the helper, a report from every phone, and the helper's total over
one list of reports. Digests are SHA-256; signed bytes begin with a label of their kind.
"""

from __future__ import annotations

import hashlib
from typing import Annotated

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from msgspec import Meta

from earshot_protocol.errors import InvalidInputError, MalformedMessageError
from earshot_protocol.remembering import remembered
from earshot_protocol.secure_sum.messages import SumAnswer, SumTask
from earshot_protocol.two_operators.parameters import TwoOperatorParameters
from earshot_protocol.wire import LARGEST_ANSWER_BYTES, Answer, Identifier, PhoneIndex, canonical
from earshot_protocol.wire import PublicKey as PublicKey  # the same type for keys of every kind

VERSION = 1
"""Version of this protocol; an offer states it."""
X25519_AES128 = 1
"""Suite of HPKE base mode (RFC 9180) with X25519, HKDF-SHA256 and AES-128-GCM."""

ID_BYTES = 16
SEED_BYTES = 32
PROVED_SEED_BYTES = 64
"""Bytes of the helper's share of a proved input: a seed and a blind."""
_SEALING_BYTES = 32 + 16
"""Bytes by which sealing lengthens: an encapsulated key and a tag."""
SEALED_BYTES = SEED_BYTES + _SEALING_BYTES
"""Bytes of a sealed seed."""
SEALED_PROVED_BYTES = PROVED_SEED_BYTES + _SEALING_BYTES
"""Bytes of a sealed seed with a blind, of a proved input."""
_LARGEST_PUBLIC = 128
"""Bytes of the public share of an input with checks by signs; others have 64."""
VERIFY_KEY_BYTES = 32
SALT_BYTES = 32
"""Bytes that hide a leader's noise in its commitment."""
LARGEST_LIST = 900 * 2**20
"""Most bytes of a list.

Both operators keep it, or an answer of its size, in one value of a database: PostgreSQL's hold less
than 2^30 bytes, SQLite's 10^9.
"""
LARGEST_HELPER_TASK = LARGEST_LIST + 2**16
LARGEST_HELPER_ANSWER = 2 * LARGEST_LIST
"""Bytes of the largest messages to and from a helper."""

Digest = Annotated[bytes, Meta(min_length=32, max_length=32)]
Signature = Annotated[bytes, Meta(min_length=64, max_length=64)]
Moment = Annotated[float, Meta(ge=0, le=1e12)]
"""Time in seconds since 1970."""
Seconds = Annotated[float, Meta(gt=0, le=1e9)]


class Offer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Offer of one sum, which both operators sign and every phone checks.

    Attributes:
        version: Version of the protocol.
        suite: Suite of the sealed seeds.
        sum_id: Identifier of the sum.
        leader: Identity of the leader, an Ed25519 key.
        helper: Identity of the helper, an Ed25519 key.
        key: Key of this sum alone, X25519, to which phones seal their seeds.
        task: Digest of what is the same for all phones: the phase's parameters and the task that
            begins the sum, without this offer.
        parameters: Parameters of the sum.
        opens: Time at which the helper made the offer.
        closes: End of the window in which phones report.
        answer_until: Time after which the helper gives no total.
    """

    version: int
    suite: int
    sum_id: Identifier
    leader: PublicKey
    helper: PublicKey
    key: PublicKey
    task: Digest
    parameters: TwoOperatorParameters
    opens: Moment
    closes: Moment
    answer_until: Moment

    def digest(self) -> bytes:
        """Return the digest that both operators sign, and that binds reports and totals."""
        return hashlib.sha256(canonical(self)).digest()


class SignedOffer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Offer with the signatures of both operators."""

    offer: Offer
    helper: Signature
    leader: Signature

    def check(self) -> None:
        """Refuse an offer that one of the operators it names has not signed.

        Raises:
            MalformedMessageError: A signature is wrong.
        """
        _check_both(self)


@remembered(4)  # all phones of a simulation receive the same
def _check_both(signed: SignedOffer) -> None:
    digest = signed.offer.digest()
    check_signature(signed.offer.helper, HELPERS_OFFER, digest, signed.helper)
    check_signature(signed.offer.leader, LEADERS_OFFER, digest, signed.leader)


class _Task(SumTask, frozen=True, kw_only=True):
    """Task of a sum by two operators."""


class MakeOffer(_Task, frozen=True, kw_only=True, tag="make-offer"):
    """Offer this sum, as the helper; the leader signs all fields but the signature.

    Attributes:
        leader: Identity of the leader.
        task: Digest of what is the same for all phones, as in `Offer`.
        parameters: Parameters of the sum.
        patience: Seconds from the end of the window for which the helper keeps its key.
        commitment: Commitment to the leader's noise. The helper answers only one request for a sum,
            so the leader has one noise for it.
        signature: Signature of the leader.
    """

    leader: PublicKey
    task: Digest
    parameters: TwoOperatorParameters
    patience: Seconds
    commitment: Digest
    signature: Signature = bytes(64)

    def body(self) -> bytes:
        """Return the bytes that the leader signs."""
        return canonical(msgspec.structs.replace(self, signature=bytes(64)))


class SendReport(_Task, frozen=True, kw_only=True, tag="send-report"):
    """Split your input, and send a share with the sealed seed of the other; opens a sum.

    Attributes:
        index: Number of the phone.
        offer: Offer of the sum; None only where the task is hashed for it.
    """

    index: PhoneIndex
    offer: SignedOffer | None = None

    def for_phone(self, phone: int) -> SendReport:
        """Return the same task for the phone of that number."""
        return msgspec.structs.replace(self, index=phone)

    @property
    def parameters(self) -> TwoOperatorParameters:
        """Parameters of the sum.

        Raises:
            MalformedMessageError: The task has no offer.
        """
        if self.offer is None:
            raise MalformedMessageError("a sum by two operators without an offer")
        return self.offer.offer.parameters

    @property
    def told_alike(self) -> SendReport:
        """The task as all phones receive it, without the offer, which contains its digest."""
        return msgspec.structs.replace(self, index=0, offer=None)


class AddUp(_Task, frozen=True, kw_only=True, tag="add-up"):
    """Add up the shares of these reports, as the helper.

    Attributes:
        offer: Digest of the offer.
        reports: Entries of the list (`lists.ListEntry`), one after the other.
        signature: Signature of the leader over the offer, the size of the list and its digest.
    """

    offer: Digest
    reports: Annotated[bytes, Meta(max_length=LARGEST_LIST)]
    signature: Signature


class PhoneReport(SumAnswer, frozen=True, kw_only=True, tag="report"):
    """A phone's input in two parts.

    Attributes:
        report_id: Identifier of the report, drawn by the phone.
        sealed: Seed of the helper's share, and of a proved input the blind, sealed to the key of
            the offer.
        share: Share of the leader: the input less the helper's share, w bits an entry; of a proved
            input the leader's share as Prio3 has it.
        public: Public share of a proved input; empty otherwise.
    """

    report_id: Identifier
    sealed: Annotated[bytes, Meta(min_length=SEALED_BYTES, max_length=SEALED_PROVED_BYTES)]
    share: Annotated[bytes, Meta(max_length=LARGEST_ANSWER_BYTES)]
    public: Annotated[bytes, Meta(max_length=_LARGEST_PUBLIC)] = b""


class HelperAnswer(Answer, frozen=True, kw_only=True):
    """Answer of the helper in one round of one sum."""

    sum_id: Identifier


class OfferMade(HelperAnswer, frozen=True, kw_only=True, tag="offer-made"):
    """Offer of a sum, signed by the helper.

    Attributes:
        offer: The offer.
        signature: Signature of the helper over the offer.
        verify_key: Key by which both operators verify proved inputs, which phones do not get; empty
            where inputs are not proved.
    """

    offer: Offer
    signature: Signature
    verify_key: Annotated[bytes, Meta(max_length=VERIFY_KEY_BYTES)] = b""


class HelperTotal(HelperAnswer, frozen=True, kw_only=True, tag="helper-total"):
    """Sum of the helper's shares of the reports that opened, with the helper's noise.

    Attributes:
        offer: Digest of the offer.
        reports: Digest of the list.
        refused: Identifiers of the reports that did not open, or whose proof failed, 16 bytes each,
            in the list's order.
        total: Sum and noise, w bits an entry; of proved inputs, elements of the field.
        verifiers: The helper's verifier shares of the proved inputs in the total, in the list's
            order; empty otherwise.
        signature: Signature of the helper over all other fields.
    """

    offer: Digest
    reports: Digest
    refused: Annotated[bytes, Meta(max_length=LARGEST_LIST)]
    total: Annotated[bytes, Meta(max_length=LARGEST_ANSWER_BYTES)]
    verifiers: Annotated[bytes, Meta(max_length=LARGEST_LIST)] = b""
    signature: Signature = bytes(64)

    def body(self) -> bytes:
        """Return the bytes that the helper signs."""
        return canonical(msgspec.structs.replace(self, signature=bytes(64)))


HELPER_TASKS = (MakeOffer, AddUp)
HELPER_ANSWERS = (OfferMade, HelperTotal)
ANSWERS = (PhoneReport,)

LEADERS_REQUEST = b"earshot two operators: leader's request"
LEADERS_NOISE = b"earshot two operators: leader's noise"
LEADERS_OFFER = b"earshot two operators: leader's offer"
HELPERS_OFFER = b"earshot two operators: helper's offer"
LEADERS_LIST = b"earshot two operators: leader's list"
HELPERS_TOTAL = b"earshot two operators: helper's total"


def read_identity(text: str) -> bytes:
    """Return an operator's identity from its 64 hexadecimal digits.

    Raises:
        InvalidInputError: The text is not such a key.
    """
    try:
        identity = bytes.fromhex(text.strip())
        Ed25519PublicKey.from_public_bytes(identity)
    except ValueError:
        raise InvalidInputError(
            f"'{text[:80]}' is not an operator's key, which has 64 hexadecimal digits"
        ) from None
    return identity


def list_body(offer: bytes, reports: bytes) -> bytes:
    """Return the bytes that the leader signs for a list: offer, size of the list, its digest."""
    return offer + len(reports).to_bytes(8) + hashlib.sha256(reports).digest()


def sign(key: Ed25519PrivateKey, what: bytes, body: bytes) -> bytes:
    """Return the signature of a message, bound to its kind."""
    return key.sign(what + hashlib.sha256(body).digest())


def check_signature(identity: bytes, what: bytes, body: bytes, signature: bytes) -> None:
    """Refuse a message that this identity has not signed as this kind.

    Raises:
        MalformedMessageError: The signature is wrong, or the identity is not a key.
    """
    try:
        key = Ed25519PublicKey.from_public_bytes(identity)
        key.verify(signature, what + hashlib.sha256(body).digest())
    except (InvalidSignature, ValueError):
        raise MalformedMessageError(f"not signed: {what.decode()}") from None
