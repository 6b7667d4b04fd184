"""Planted faults of phones in phases: noise for too many, noise twice, and a ledger that forgets.

None of them exists outside this file. What is caught here is caught in product code by the same
functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from earshot_client.store.memory import MemoryStore
from earshot_protocol.keyed_randomness import KEY_BYTES, keyed
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.randomness import RandomBytes
from earshot_simulations.auditing.crowds import noise_check, shares_of
from earshot_simulations.auditing.findings import FAULTS, Check, Finding, Result, Role
from earshot_simulations.auditing.plans import PHASES
from earshot_simulations.auditing.whole_phones import (
    Crowd,
    ledger,
    phones_apart,
    play,
    small,
    sums_apart,
)

_KINDS = ("local route, points", "secure-sum route", "votes on samples", "contacts by environment")
"""A phase of every kind."""
_POINTS, _SECURE_SUMS = _KINDS[:2]


def phone_faults() -> Iterator[Result]:
    """Plant every one of them."""
    for name in _KINDS:
        yield from noise_for_everybody(name)
    yield second_sums_noise()
    yield from one_stream()
    yield forgetful_ledger()


def noise_for_everybody(name: str) -> Iterator[Check]:
    """Make shares of noise for n phones where n' are counted on, in every sum of a phase."""
    parameters = PHASES[name]
    sums: dict[str, Any] = {
        part.name: part.mechanism
        for part in parameters.plan().parts
        if isinstance(part, SecureSum) and part.repetition < 2
    }
    for step, mechanism in sums.items():
        broken = replace(mechanism, honest_survivors=parameters.phones)
        case = f"n for n': {step}"
        yield noise_check(FAULTS, case, {shares_of(parameters): broken}, Role.FAULT)


def second_sums_noise() -> Check:
    """Use the noise of a phone's first sum ever after: a server that subtracts sees the rest.

    It has the law that it should have in each sum.
    """
    seen = play(small(PHASES[_SECURE_SUMS]), Crowd(reuses=True))
    return replace(sums_apart("noise of the first sum in all", seen, Role.FAULT), subject=FAULTS)


def one_stream() -> Iterator[Check]:
    """Draw noise from a stream that begins anew for every sum; and from one that phones share."""
    for words, random, check in (
        ("one stream for all sums", _anew, sums_apart),
        ("one stream for two phones", lambda number: _anew(number // 4), phones_apart),
    ):
        crowd = Crowd(random=random)
        found = check(words, play(small(PHASES[_SECURE_SUMS]), crowd), Role.FAULT)
        yield replace(found, subject=FAULTS)


def forgetful_ledger() -> Finding:
    """Hold three times what the phase says, and pay for as many as it says."""
    parameters = small(PHASES[_POINTS])

    class Nominal(MemoryStore):
        """Keeps all that a phone hears, and counts less."""

        def count(self) -> int:
            """Count what the phase says, at most."""
            return min(super().count(), getattr(parameters, "recordings", 0))

    *_, of_phone = ledger(
        "recordings held ignored", play(parameters, Crowd(store=Nominal)), Role.FAULT
    )
    return replace(of_phone, subject=FAULTS)


def _anew(number: int) -> RandomBytes:
    """Give the same bytes from the beginning, whenever some are asked for."""

    def random(size: int) -> bytes:
        return keyed(bytes(KEY_BYTES), number)(size)

    return random
