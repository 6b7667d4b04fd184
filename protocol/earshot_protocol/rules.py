"""Names of the rules by which a phone refuses, the only detail of a refusal that it may send.

The list is closed: no other name is sent. No rule depends on what a phone has heard, so its name
reveals nothing about it; costs that grow with the number of recordings are computed, and booked,
for a number that hardly any phone exceeds (`local_mechanisms.COUNTED_RECORDINGS`).
"""

from __future__ import annotations

import enum


class Rule(enum.StrEnum):
    """Reason why a phone refuses. The limits have the names of `phases.acceptance.Limits`."""

    LEAST_PHONES = "least_phones"
    LARGEST_PHONES = "largest_phones"
    LARGEST_NOISE_CROWD = "largest_noise_crowd"
    LARGEST_EPSILON = "largest_epsilon"
    LARGEST_DELTA = "largest_delta"
    LARGEST_YEARLY_EPSILON = "largest_yearly_epsilon"
    LARGEST_YEARLY_DELTA = "largest_yearly_delta"
    LARGEST_LIFETIME_EPSILON = "largest_lifetime_epsilon"
    LARGEST_LIFETIME_DELTA = "largest_lifetime_delta"
    LARGEST_PHONE_EPSILON = "largest_phone_epsilon"
    LARGEST_PHONE_DELTA = "largest_phone_delta"
    LARGEST_YEARLY_PHONE_EPSILON = "largest_yearly_phone_epsilon"
    LARGEST_YEARLY_PHONE_DELTA = "largest_yearly_phone_delta"
    LARGEST_LIFETIME_PHONE_EPSILON = "largest_lifetime_phone_epsilon"
    LARGEST_LIFETIME_PHONE_DELTA = "largest_lifetime_phone_delta"
    DELTA = "delta"
    """The phase's δ is not below 1/phones, so one of its phones might be exposed."""
    LARGEST_DROPOUT = "largest_dropout"
    LEAST_CORRUPTED = "least_corrupted"
    LEAST_THRESHOLD = "least_threshold"
    LEAST_STATISTICAL_SECURITY = "least_statistical_security"
    LEAST_CORRECTNESS = "least_correctness"
    ENCODER = "encoder"
    """The phase reads embeddings of another encoder than this phone's."""
    DIMENSIONS = "dimensions"
    """The phase reads more dimensions than an embedding has."""
    PARAMETERS = "parameters"
    """No phase can run under these parameters."""
    SUM = "sum"
    """Parameters of a secure sum that are not those of its phase, or under which no sum is safe."""
    UNKNOWN_HELPER = "unknown_helper"
    """One of the two operators of a sum is not among those that this phone's app names."""
    WEAK_NOISE = "weak_noise"
    """The operators of a sum would add less noise than its phase promises."""
    TOO_FEW = "too_few"
    """A sum by two operators would be made of fewer reports than its phase promises."""
    WRONG_OFFER = "wrong_offer"
    """The offer of a sum is not signed by both operators, or is for another task."""
    PROOFS = "proofs"
    """Ballots must be proved, and this phone has no library for proofs."""
    CLOSED = "closed"
    """Reports of the sum are taken at another time, by this phone's clock."""
    CHANGED = "changed"
    """Something that the phone agreed to changes between two steps of a phase."""
    REPEATED = "repeated"
    """The release is in the ledger already: nothing is released twice."""
    PROTOCOL = "protocol"
    """A task that the protocol forbids."""
