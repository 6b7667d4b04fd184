"""Invitation codes: whoever holds one may enrol, nobody else, and not for ever."""

from __future__ import annotations

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from earshot_protocol.api import LARGEST_INVITED, Invite
from earshot_server.attestation import Admission, InvitationCodes, InvitationError

NOW = 1_700_000_000.0
PHONE = bytes(range(32))
KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
CODES = InvitationCodes(KEY)


def test_a_code_admits_until_it_expires() -> None:
    invitation = CODES.issue(Invite(uses=7, days=2.0), NOW)
    assert invitation.uses == 7
    assert invitation.expires == NOW + 2 * 86_400
    first = CODES.check(invitation.code, PHONE, NOW)
    assert isinstance(first, Admission)
    assert first.uses == 7
    assert len(first.invitation) == 16
    assert CODES.check(invitation.code, bytes(32), invitation.expires - 1) == first
    with pytest.raises(InvitationError, match="expired"):
        CODES.check(invitation.code, PHONE, invitation.expires)


def test_the_limits_of_an_invitation_fit_a_code() -> None:
    invitation = CODES.issue(Invite(uses=LARGEST_INVITED, days=3650.0), NOW)
    assert CODES.check(invitation.code, PHONE, NOW).uses == LARGEST_INVITED


def test_two_codes_are_two_invitations() -> None:
    admitted = {CODES.check(CODES.issue(Invite(), NOW).code, PHONE, NOW) for _ in range(50)}
    assert len(admitted) == 50


def test_another_servers_code_admits_nobody() -> None:
    other = InvitationCodes(Ed25519PrivateKey.generate())
    with pytest.raises(InvitationError, match="not an invitation code of this server"):
        CODES.check(other.issue(Invite(), NOW).code, PHONE, NOW)


def test_a_signature_that_the_key_gave_for_something_else_admits_nobody() -> None:
    body = base64.urlsafe_b64decode(CODES.issue(Invite(), NOW).code)[:32]
    code = base64.urlsafe_b64encode(body + KEY.sign(body)).decode()
    with pytest.raises(InvitationError):
        CODES.check(code, PHONE, NOW)


@given(bit=st.integers(0, 8 * 96 - 1))
def test_a_code_with_one_bit_flipped_admits_nobody(bit: int) -> None:
    signed = bytearray(base64.urlsafe_b64decode(CODES.issue(Invite(), NOW).code))
    signed[bit // 8] ^= 1 << bit % 8
    with pytest.raises(InvitationError, match="not an invitation code"):
        CODES.check(base64.urlsafe_b64encode(signed).decode(), PHONE, NOW)


@given(code=st.text(max_size=200))
def test_any_other_text_admits_nobody(code: str) -> None:
    with pytest.raises(InvitationError, match="not an invitation code"):
        CODES.check(code, PHONE, NOW)


@given(length=st.integers(0, 127))
def test_a_code_that_is_cut_short_or_goes_on_admits_nobody(length: int) -> None:
    code = CODES.issue(Invite(), NOW).code
    for wrong in (code[:length], code + "A" * (length + 1)):
        with pytest.raises(InvitationError):
            CODES.check(wrong, PHONE, NOW)


def test_a_refused_code_is_not_repeated_to_anybody() -> None:
    with pytest.raises(InvitationError) as refused:
        CODES.check("my-secret-code", PHONE, NOW)
    assert "my-secret-code" not in str(refused.value)
