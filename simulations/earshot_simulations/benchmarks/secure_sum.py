"""Cost of one secure sum to a phone and the server, compared with a floor and a peer.

All run in one process. The floor is k X25519 exchanges per phone, timed between the phones of the
same run. The peer is sslib, which shares and recovers one secret; it is measured if installed.
Phones drop out after sharing their keys, when a dropout costs the server most.
"""

from __future__ import annotations

import os
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from earshot_protocol.checks import whole
from earshot_protocol.overriding import override
from earshot_protocol.progress import Progress, silent
from earshot_protocol.secure_sum import shamir
from earshot_protocol.secure_sum.parameters import SumParameters, choose
from earshot_protocol.secure_sum.rounds import Round
from earshot_protocol.sum_in_process import Observer, Vector, run_sum
from earshot_protocol.two_operators.rounds import REPORT

_T = TypeVar("_T")
_SHARING = (Round.ADVERTISE_KEYS, Round.SHARE_KEYS)
"""Rounds before any phone drops out."""
_TIMED = (Round.SHARE_KEYS, Round.MASKED_INPUT, REPORT)
"""Rounds during which the floor is timed: those that cost phones most."""
LARGEST_ENTRY = 1000
_MOST_ENTRIES = 10**9
"""Most entries of all phones' vectors together: they are in memory, 8 bytes each."""
_FLOOR_EXCHANGES = 20
_PEER_REPEATS = 5
_SEALING_BYTES = 12 + 16  # AEAD nonce and tag


@dataclass
class _Clock:
    """CPU seconds that this process spent in calls."""

    seconds: float = 0.0

    def time(self, call: Callable[[], _T]) -> _T:
        started = time.process_time()
        result = call()
        self.seconds += time.process_time() - started
        return result


@dataclass
class SumMeasured(Observer):
    """Observer of the cost of a sum.

    Attributes:
        progress: Callback that receives the round, and the parties done and in all.
        server_seconds: CPU seconds of the server.
        answers: CPU seconds of each answer, by the name of the round.
        floor: CPU seconds of an X25519 exchange, timed repeatedly between the answers.
        up: Bytes that each party sent.
        down: Bytes that each party received.
    """

    progress: Progress
    server_seconds: float = 0.0
    answers: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    floor: list[float] = field(default_factory=list)
    up: Counter[int] = field(default_factory=Counter)
    down: Counter[int] = field(default_factory=Counter)

    def floor_ms(self, exchanges: int) -> float:
        """Return the CPU milliseconds of this many X25519 exchanges, by the median."""
        return 1000 * exchanges * statistics.median(self.floor)

    @override
    def answered(self, name: str, phone: int, seconds: float, down: int, up: int) -> None:
        self.answers[name].append(seconds)
        self.down[phone] += down
        self.up[phone] += up

    @override
    def served(self, seconds: float) -> None:
        self.server_seconds += seconds

    @override
    def went_on(self, name: str, done: int, total: int) -> None:
        if name in _TIMED:
            self.floor.append(_exchange_seconds())
        self.progress(name, done, total)


def benchmark(
    phones: int,
    neighbours: int | None,
    length: int,
    dropout: float,
    corrupted: float = 0.05,
    progress: Progress = silent,
) -> dict[str, object]:
    """Run one real sum over random vectors and measure it.

    Args:
        phones: Number of phones (n).
        neighbours: Neighbours of a phone (k); None for the smallest safe number.
        length: Entries of a vector, each between −1000 and 1000.
        dropout: Tolerated fraction of dropouts (ρ), and the fraction of phones that drop out.
        corrupted: Tolerated fraction of corrupted phones (γ).
        progress: Callback that receives the round, and the phones done and in all.

    Returns:
        Figures by the names of the JSON output; times in milliseconds of CPU, medians over phones.

    Raises:
        InvalidParametersError: No sum is safe under these parameters.
    """
    figures, parameters = bell(phones, neighbours, length, dropout, corrupted, progress)
    return figures | {"peer": _peer(parameters.degree, parameters.threshold)}


def bell(
    phones: int,
    neighbours: int | None,
    length: int,
    dropout: float,
    corrupted: float,
    progress: Progress,
) -> tuple[dict[str, Any], SumParameters]:
    """Return the figures of `benchmark` without the peer, and the parameters of the sum."""
    values = random_inputs(phones, length)
    parameters = choose(phones, (length,), LARGEST_ENTRY, dropout, corrupted, neighbours=neighbours)
    staying = staying_phones(phones, parameters.largest_dropout_count)
    measured = SumMeasured(progress)
    found = run_sum(
        parameters,
        lambda phone: values[phone],
        lambda name: range(phones) if name in _SHARING else staying,
        measured,
    )
    exact = bool(np.array_equal(found.total, values[staying].sum(axis=0)))
    return _figures(parameters, measured, staying, exact), parameters


def random_inputs(phones: int, length: int) -> Vector:
    """Return inputs of phones, int64 (phones, length).

    Raises:
        InvalidParametersError: There are fewer than 3 phones, no entries, or over 10⁹ in all.
    """
    whole("phones", phones, 3, _MOST_ENTRIES)
    whole("length", length, 1, _MOST_ENTRIES // phones)
    generator = np.random.default_rng(0)
    return generator.integers(-LARGEST_ENTRY, LARGEST_ENTRY + 1, (phones, length))


def staying_phones(phones: int, dropped: int) -> list[int]:
    """Return the phones that stay if this many, drawn at random, drop out."""
    gone = np.random.default_rng(1).choice(phones, dropped, replace=False)
    return np.delete(np.arange(phones), gone).tolist()


def _exchange_seconds() -> float:
    """Measure the CPU seconds of one X25519 exchange."""
    private = X25519PrivateKey.generate()
    public = X25519PrivateKey.generate().public_key()
    started = time.process_time()
    for _ in range(_FLOOR_EXCHANGES):
        private.exchange(public)
    return (time.process_time() - started) / _FLOOR_EXCHANGES


def _figures(
    parameters: SumParameters, measured: SumMeasured, survivors: list[int], exact: bool
) -> dict[str, Any]:
    degree = parameters.degree
    per_round = {
        name: 1000 * statistics.median(seconds) for name, seconds in measured.answers.items()
    }
    phone = sum(per_round.values())
    floor = measured.floor_ms(degree)
    up = statistics.mean(measured.up[phone] for phone in survivors)
    vector = -(-parameters.length * parameters.modulus_bits // 8)
    return {
        "phones": parameters.phones,
        "survivors": len(survivors),
        "neighbours": degree,
        "threshold": parameters.threshold,
        "length": parameters.length,
        "modulus_bits": parameters.modulus_bits,
        "phone_cpu_ms": phone,
        "phone_cpu_ms_per_round": per_round,
        "floor_ms": floor,
        "ratio": phone / floor,
        "server_cpu_ms_per_survivor": 1000 * measured.server_seconds / len(survivors),
        "bytes_up": up,
        "bytes_up_formula": 64 + degree * (65 + _SEALING_BYTES + 32) + vector + 33 * degree,
        "bytes_down": statistics.mean(measured.down[phone] for phone in survivors),
        "exact": exact,
    }


def _peer(count: int, threshold: int) -> dict[str, object] | None:
    """Return CPU ms to share and recover one secret, with sslib and ours; None without sslib."""
    try:
        from importlib.metadata import version

        from sslib import shamir as peer
    except ModuleNotFoundError:
        return None
    secret = bytes(1) + os.urandom(31)

    def median(call: Callable[[], object]) -> float:
        clocks = [_Clock() for _ in range(_PEER_REPEATS)]
        for clock in clocks:
            clock.time(call)
        return 1000 * statistics.median(clock.seconds for clock in clocks)

    theirs = peer.split_secret(secret, threshold, count)
    theirs["shares"] = theirs["shares"][:threshold]
    ours = {
        point: int.from_bytes(share.tobytes())
        for point, share in enumerate(shamir.split([secret], threshold, count)[0], start=1)
    }
    return {
        "name": f"sslib {version('sslib')}",
        "split_ms": median(lambda: peer.split_secret(secret, threshold, count)),
        "recover_ms": median(lambda: peer.recover_secret(theirs)),
        "our_split_ms": median(lambda: shamir.split([secret], threshold, count)),
        "our_recover_ms": median(lambda: shamir.recover(ours, count)),
    }
