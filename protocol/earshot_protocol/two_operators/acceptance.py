"""Checks of an offer: a phone's before it reports, and the leader's before it publishes it."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from earshot_protocol.distribution import installation
from earshot_protocol.errors import MalformedMessageError, RefusedError
from earshot_protocol.rules import Rule
from earshot_protocol.secure_sum.points import LOW_ORDER, points
from earshot_protocol.two_operators.messages import VERSION, X25519_AES128, SendReport
from earshot_protocol.two_operators.parameters import TwoOperatorParameters
from earshot_protocol.two_operators.proofs import available

LARGEST_SKEW = 3600.0
"""Seconds by which a phone's clock may differ from the helper's."""


def refusals_of_offer(
    opening: SendReport,
    expected: TwoOperatorParameters,
    task: bytes,
    leaders: Collection[bytes],
    helpers: Collection[bytes],
    now: float,
) -> Iterator[RefusedError]:
    """Yield every reason for which a phone sends no report under an offer.

    Args:
        opening: Task that opens the sum.
        expected: Parameters of the sum as the phone derives them from its phase.
        task: Digest of the description of the sum, as the phone received it.
        leaders: Identities that the phone accepts as leaders.
        helpers: Identities that it accepts as helpers, which must be other organizations.
        now: Present time by the phone's clock, in seconds since 1970.
    """
    signed = opening.offer
    if signed is None:
        yield RefusedError(f"{Rule.WRONG_OFFER}: the task has no offer", Rule.WRONG_OFFER)
        return
    offer, stated = signed.offer, signed.offer.parameters
    if expected.proof is not None and not available():
        yield RefusedError(
            f"{Rule.PROOFS}: its inputs must be proved, and this phone lacks pycryptodomex for "
            f"that: {installation('proofs')}",
            Rule.PROOFS,
        )
    for role, identity, known in (
        ("leader", offer.leader, leaders),
        ("helper", offer.helper, helpers),
    ):
        if identity not in known:
            yield RefusedError(
                f"{Rule.UNKNOWN_HELPER}: this app names no {role} {identity.hex()[:16]}…",
                Rule.UNKNOWN_HELPER,
            )
    if offer.leader == offer.helper:
        yield RefusedError(
            f"{Rule.UNKNOWN_HELPER}: leader and helper are the same", Rule.UNKNOWN_HELPER
        )
    try:
        signed.check()
    except MalformedMessageError as error:
        yield RefusedError(f"{Rule.WRONG_OFFER}: {error}", Rule.WRONG_OFFER)
    if not stated.noise.protects_as(expected.noise):
        yield RefusedError(
            f"{Rule.WEAK_NOISE}: each operator would add {stated.noise}; at least {expected.noise} "
            "is accepted",
            Rule.WEAK_NOISE,
        )
    if stated.least < expected.least:
        yield RefusedError(
            f"{Rule.TOO_FEW}: a total of {stated.least} reports; at least {expected.least} are "
            "accepted",
            Rule.TOO_FEW,
        )
    about = (offer.version, offer.suite, offer.sum_id, offer.task, stated)
    agreed = (VERSION, X25519_AES128, opening.sum_id, task, expected)
    if about != agreed:
        yield RefusedError(
            f"{Rule.WRONG_OFFER}: the offer is for another task, sum or version than this one",
            Rule.WRONG_OFFER,
        )
    if points([offer.key]) & LOW_ORDER:
        yield RefusedError(
            f"{Rule.WRONG_OFFER}: anybody can open what is sealed to the key of the offer",
            Rule.WRONG_OFFER,
        )
    opens, closes = offer.opens - LARGEST_SKEW, offer.closes + LARGEST_SKEW
    lasts = abs(offer.closes - offer.opens - stated.window) <= 1e-3  # false for NaN
    if not (opens <= now <= closes and lasts):
        yield RefusedError(
            f"{Rule.CLOSED}: reports of this sum are not accepted now",
            Rule.CLOSED,
        )
