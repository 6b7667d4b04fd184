"""Every secret that phones draw in whole phases, answer by answer, and its use.

A secret protects a phone only if the operating system drew all of it for a single use. So the
secrets of each answer are recovered with the keys of the audit's own operators, and each must be
among the bytes that the phone drew for that answer, and for no other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from earshot_protocol.secure_sum.messages import (
    AdvertisedKeys,
    AdvertiseKeys,
    SharedKeys,
)
from earshot_protocol.two_operators.messages import ID_BYTES, PhoneReport, SendReport
from earshot_protocol.two_operators.proofs import proof_of
from earshot_protocol.two_operators.shares import unseal
from earshot_protocol.wire import Answer, Task
from earshot_server.proofs.engine import fastest
from earshot_simulations.auditing import power
from earshot_simulations.auditing.findings import Check
from earshot_simulations.auditing.sum_secrets import KEY_BYTES
from earshot_simulations.auditing.watched_operators import WatchedSum

_NONCE_BYTES, _LEAST = 12, ID_BYTES
"""Bytes of a nonce, and of a secret that never repeats by chance."""


class SecretsOfAnswer(NamedTuple):
    """Random bytes that a phone requested from the operating system for one answer.

    Attributes:
        task: Task that it answered.
        answer: Its answer.
        secrets: Random bytes that it received, without those of its noise.
    """

    task: Task
    answer: Answer
    secrets: list[bytes]


def audit_asked(
    name: str, asked: Iterable[SecretsOfAnswer], sums: Mapping[bytes, WatchedSum]
) -> Iterator[Check]:
    """Check the secrets of phones in phases.

    Args:
        name: Name of the phase.
        asked: Random bytes that phones requested, answer by answer.
        sums: Sums of the audit's operators, by identifier.
    """
    answers = list(asked)
    reports: Counter[bytes] = Counter()
    thresholds: dict[bytes, int] = {}
    missing = Counter[str]()
    public = list[bytes]()
    secrets = [each for one in answers for each in one.secrets if len(each) >= _LEAST]
    for one in answers:
        opening = getattr(one.task, "opening", None)
        match one.answer:
            case AdvertisedKeys(sum_id=sum_id, public_key=key) if isinstance(
                opening, AdvertiseKeys
            ):
                thresholds[sum_id] = opening.parameters.threshold
                public.append(key)
            case SharedKeys() as shared:
                missing.update(_missing_of_keys(shared, one.secrets, thresholds[shared.sum_id]))
            case PhoneReport() as report if isinstance(opening, SendReport):
                seen, number = sums[report.sum_id], reports[report.sum_id]
                missing.update(_missing_of_report(report, opening, one.secrets, seen, number))
                reports[report.sum_id] += 1
                public.append(report.sealed[:KEY_BYTES])
    again = len(secrets) - len(set(secrets))
    if again:
        missing["unique secrets"] = again
    if len(set(public)) < len(public):
        missing["unique keys"] = len(public) - len(set(public))
    said = ", ".join(f"{count} without {what}" for what, count in missing.items())
    yield Check(
        f"{name}: secrets that phones draw",
        "each whole from the operating system, and used once",
        said or f"{len(secrets)} secrets, {len(public)} keys",
        not missing,
        f"{len(answers)} answers of real phones, and the bytes drawn for each",
        power.EXACTLY,
    )


def _missing_of_keys(answer: SharedKeys, secrets: list[bytes], threshold: int) -> Iterator[str]:
    """Yield the random bytes that a phone should have drawn to share its keys, and did not."""
    sizes = Counter(map(len, secrets))
    if sizes[KEY_BYTES] < 2:
        yield "a seed and a lock"
    if not sizes[2 * KEY_BYTES * (threshold - 1)]:
        yield "coefficients"
    nonces = b"".join(each[:_NONCE_BYTES] for each in answer.ciphertexts)
    if nonces not in secrets:
        yield "nonces"


def _missing_of_report(
    report: PhoneReport, task: SendReport, secrets: list[bytes], seen: WatchedSum, number: int
) -> Iterator[str]:
    """Yield the secrets that a phone did not draw for its report, at `number` in its sum."""
    if task.offer is None:
        return
    offer, key = task.offer.offer, X25519PrivateKey.from_private_bytes(seen.key)
    sealed = unseal(report.sealed, key, offer.digest(), report.report_id, report.public)
    if report.report_id not in secrets or len(report.report_id) != ID_BYTES:
        yield "an identifier"
    if offer.parameters.proof is None:
        if sealed not in secrets or len(sealed or b"") != KEY_BYTES:
            yield "a seed"
        return
    proof, ballot = proof_of(offer, fastest()), seen.inputs[number]
    drawn = (each for each in secrets if len(each) == proof.rand_bytes)
    made = [tuple(proof.shard(ballot, report.report_id, each)) for each in drawn]
    if (report.public, report.share, sealed) not in made:
        yield "the randomness of its proof"
