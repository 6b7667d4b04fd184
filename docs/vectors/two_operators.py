"""Test vectors of sums by two operators: widths, shares, offers, whole sums, and what is refused.

HPKE draws its ephemeral key where no script reaches it, so seeds are sealed here step by step (RFC
9180), and our code has to open them.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from unittest import mock

import examples
import msgspec
import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand
from scripted import drawn, scripted

from earshot_protocol.errors import MalformedMessageError
from earshot_protocol.phases.discovery import SumLabels
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.plan import SecureSum, SumPartTask
from earshot_protocol.phases.statistics import CountContacts
from earshot_protocol.prio3.field import from_signed
from earshot_protocol.prio3.shapes import Counts, Norm
from earshot_protocol.privacy.mechanisms import GRID
from earshot_protocol.privacy.sum_noise import WholeGaussian, WholeLaplace
from earshot_protocol.rules import Rule
from earshot_protocol.secure_sum import encoding
from earshot_protocol.secure_sum.interface import HELPER
from earshot_protocol.two_operators import acceptance, messages, shares
from earshot_protocol.two_operators.acceptance import LARGEST_SKEW, refusals_of_offer
from earshot_protocol.two_operators.leader import Leader, LeaderKeys
from earshot_protocol.two_operators.messages import (
    AddUp,
    HelperTotal,
    MakeOffer,
    Offer,
    OfferMade,
    PhoneReport,
    SendReport,
    SignedOffer,
)
from earshot_protocol.two_operators.parameters import TwoOperatorParameters
from earshot_protocol.two_operators.participant import ReportingParticipant
from earshot_protocol.two_operators.proofs import proof_of
from earshot_protocol.two_operators.sizes import sizes
from earshot_protocol.wire import canonical, encode
from earshot_server.helper import helper as helper_module
from earshot_server.helper.book import MemoryBook
from earshot_server.helper.helper import Helper, HelperPolicy

Vector = dict[str, Any]

_NOW = 1_800_000_000.25
_TOLD = drawn("what phones of two operators were told", 40)
_LEADER = Ed25519PrivateKey.from_private_bytes(drawn("leader", 32))
_HELPER = Ed25519PrivateKey.from_private_bytes(drawn("helper", 32))
_SMALL = TwoOperatorParameters(
    phones=5, shape=(2, 3), bound=100, noise=WholeGaussian.of(50), least=3, window=3600.0
)
_INPUTS = {
    0: [[1, 2, 3], [-100, 0, 100]],
    1: [[17, -17, 5], [50, 50, 50]],
    2: [[-9, 100, -1], [0, 0, 0]],
    4: [[0, 0, 7], [-100, -100, 1]],
}
"""Inputs of the phones that report; phone 3 does not, and the report of phone 2 does not open."""
_BROKEN = 2
_PROVED = TwoOperatorParameters(
    phones=4,
    shape=(2, 3),
    bound=1,
    noise=WholeLaplace.of(4.0),
    least=3,
    window=3600.0,
    proof=Counts(1, 2, 6),
)
_BALLOTS = {
    0: [[1, 0, 0], [0, 0, 1]],
    1: [[0, 0, 0], [0, 0, 0]],
    2: [[0, 2, 0], [0, 0, 0]],
    3: [[0, 0, 1], [0, 0, 0]],
}
"""Ballots of phones that prove them; that of phone 2 is none, and its proof fails."""
_PROVED_VECTORS = msgspec.structs.replace(
    _PROVED, phones=3, bound=GRID, noise=WholeGaussian.of(50), least=2, proof=Norm()
)
_VECTORS = {
    0: [[1, -2, 4000], [0, 0, -100]],
    1: [[0, 0, 0], [0, 0, -4095]],
    2: [[4096, 0, 0], [0, 0, 0]],
}
"""Vectors of phones that prove them; that of phone 2 is too long by the least there is."""
_FALSE = 2


def two_operator_vectors() -> Vector:
    """Return what two operators and their phones compute, each with all of its randomness."""
    return {
        "operators": {
            name: {
                "private": key.private_bytes_raw().hex(),
                "public": key.public_key().public_bytes_raw().hex(),
            }
            for name, key in (("leader", _LEADER), ("helper", _HELPER))
        },
        "widths": [_width(*case) for case in _WIDTHS],
        "sums": [
            _derived(parameters, part.name)
            for parameters in _PHASES
            for part in parameters.plan().parts
            if isinstance(part, SecureSum)
        ],
        "releases": [
            {
                "parameters": json.loads(msgspec.json.encode(parameters)),
                "releases": msgspec.to_builtins(parameters.plan().releases()),
            }
            for parameters in _PHASES
        ],
        "shares": [_share(bound, width) for bound, width in ((100, 13), (2**15, 21), (2**34, 40))],
        "offers": [_offered(task, parameters) for task, parameters in _offers()],
        "sum": _whole_sum(),
        "proved_sum": _proved_sum("sum of proved ballots", _PROVED, _BALLOTS),
        "proved_vectors": _proved_sum("sum of proved vectors", _PROVED_VECTORS, _VECTORS),
        "refused": _refused(),
    }


# --------------------------------------------------------------------- parameters, noise, widths

_PHASES = (
    examples.OPERATED_LEARNING,
    examples.OPERATED_STATISTICS,
    examples.OPERATED_DISCOVERY,
    examples.OPERATED_LABELLING,
    examples.PROVED_LEARNING,
    examples.PROVED_STATISTICS,
    examples.PROVED_DISCOVERY,
    examples.PROVED_LABELLING,
)
_WIDTHS = (
    (5, (1,), 1, WholeLaplace(1)),
    (500, (3,), 20, WholeLaplace.of(4.0)),
    (500, (10, 3), 3, WholeLaplace.of(1 / 3)),
    (10**7, (1000,), 1, WholeLaplace(2**62)),
    (5, (1,), 1, WholeGaussian(1)),
    (500, (10, 128), 4096, WholeGaussian.of(419_430_400)),
    (500, (10, 128), 4096, WholeGaussian.of(1e8 / 3)),
    (10**8, (2**24,), 4096, WholeGaussian(2**62)),
)


def _parameters(
    phones: int, shape: tuple[int, ...], bound: int, noise: WholeLaplace | WholeGaussian
) -> TwoOperatorParameters:
    return TwoOperatorParameters(phones, shape, bound, noise, 2, 86_400.0)


def _width(
    phones: int, shape: tuple[int, ...], bound: int, noise: WholeLaplace | WholeGaussian
) -> Vector:
    parameters = _parameters(phones, shape, bound, noise)
    parameters.check()
    return {
        "phones": phones,
        "length": parameters.length,
        "bound": bound,
        "noise": msgspec.to_builtins(noise),
        "reach": noise.reach(parameters.length),
        "width": parameters.modulus_bits,
    }


def _derived(parameters: Parameters, name: str) -> Vector:
    part = parameters.plan().part(name)
    if not isinstance(part, SecureSum):
        raise TypeError(name)
    shape = (3, 3)
    agreed = parameters.sum_parameters(part, shape)
    if not isinstance(agreed, TwoOperatorParameters):
        raise TypeError(type(agreed))
    return {
        "parameters": json.loads(msgspec.json.encode(parameters)),
        "part": name,
        "sum": msgspec.to_builtins(agreed),
        "width": agreed.modulus_bits,
    }


# -------------------------------------------------------------------------- the halves of an input


def _share(bound: int, width: int) -> Vector:
    """Return both shares of an input with the largest entries, and how the leader's is packed."""
    parameters = _parameters(20, (2, 3), bound, WholeLaplace.of(4.0))
    if parameters.modulus_bits != width:
        raise ValueError(f"{parameters.modulus_bits} bits where {width} were meant")
    seed = drawn(f"seed at {width} bits", 32)
    values = np.array([[bound, -bound, 0], [1, -1, bound // 3]])
    theirs = shares.helper_shares((seed,), parameters)
    ours = encoding.encode(values, parameters) - theirs
    return {
        "phones": parameters.phones,
        "bound": bound,
        "noise": msgspec.to_builtins(parameters.noise),
        "width": width,
        "seed": seed.hex(),
        "input": values.tolist(),
        "helpers_share": [int(word) % 2**width for word in theirs],
        "leaders_share": [int(word) % 2**width for word in ours],
        "packed": encoding.pack(ours, width).hex(),
    }


class _Sealed(NamedTuple):
    """A sealed seed, and the random key behind it."""

    data: bytes
    ephemeral: bytes


def _seal(
    seed: bytes, private: bytes, offer: bytes, report_id: bytes, share: bytes = b""
) -> _Sealed:
    """Seal a seed by HPKE's base mode with a scripted ephemeral key; our code must open it."""
    ephemeral = drawn(f"ephemeral key of {report_id.hex()}", 32)
    pair, key = map(X25519PrivateKey.from_private_bytes, (ephemeral, private))
    public = key.public_key()
    enc, kem = pair.public_key().public_bytes_raw(), b"KEM\x00\x20"
    context = enc + public.public_bytes_raw()
    secret = _extract(kem, b"", b"eae_prk", pair.exchange(public))
    secret = _expand(kem, secret, b"shared_secret", context, 32)
    suite = b"HPKE\x00\x20\x00\x01\x00\x01"
    info = offer + report_id + hashlib.sha256(share).digest()
    hashes = (_extract(suite, b"", b"psk_id_hash", b""), _extract(suite, b"", b"info_hash", info))
    scheduled, secret = b"\x00" + b"".join(hashes), _extract(suite, secret, b"secret", b"")
    cipher = AESGCM(_expand(suite, secret, b"key", scheduled, 16))
    nonce = _expand(suite, secret, b"base_nonce", scheduled, 12)
    sealed = enc + cipher.encrypt(nonce, seed, None)
    if shares.unseal(sealed, key, offer, report_id, share) != seed:
        raise ValueError("a seed that was sealed step by step does not open")
    return _Sealed(sealed, ephemeral)


def _extract(suite: bytes, salt: bytes, label: bytes, secret: bytes) -> bytes:
    return HKDF.extract(SHA256(), salt or bytes(32), b"HPKE-v1" + suite + label + secret)


def _expand(suite: bytes, secret: bytes, label: bytes, info: bytes, size: int) -> bytes:
    labelled = size.to_bytes(2) + b"HPKE-v1" + suite + label + info
    return HKDFExpand(SHA256(), size, labelled).derive(secret)


# ------------------------------------------------------------------------------------------ offers


def _offers() -> Iterator[tuple[SumPartTask, Parameters]]:
    for task in examples.TASKS:
        if isinstance(task, CountContacts | SumLabels) and isinstance(task.opening, SendReport):
            yield task, task.parameters or examples.OPERATED_DISCOVERY


def _offered(task: SumPartTask, phase: Parameters) -> Vector:
    """Return what both operators say before a sum of a phase opens, and the task of a phone."""
    part = phase.plan().part_of(task)
    if not isinstance(part, SecureSum):
        raise TypeError(part)
    shape = (3, 3) if isinstance(task, SumLabels) else (2 * len(phase.labels) + 1,)
    agreed = phase.sum_parameters(part, shape)
    if not isinstance(agreed, TwoOperatorParameters):
        raise TypeError(type(agreed))
    sum_id, told = task.opening.sum_id, task.told(phase)
    leader, made, _ = _begun(sum_id, agreed, told)
    opening = leader.task_for(300)
    if not isinstance(opening, SendReport) or opening.offer is None:
        raise TypeError(type(opening))
    request = leader._signed_request()
    offer = opening.offer.offer
    return {
        "parameters": json.loads(msgspec.json.encode(phase)),
        "task": encode(msgspec.structs.replace(task, opening=opening)).hex(),
        "told": told.hex(),
        "task_digest": hashlib.sha256(told).hexdigest(),
        "request": encode(request).hex(),
        "request_body": request.body().hex(),
        "made": encode(made).hex(),
        "offer": canonical(offer).hex(),
        "offer_digest": offer.digest().hex(),
    }


class _Noise:
    """Bytes of a label, a part at a time."""

    def __init__(self, label: str) -> None:
        self._label, self._calls = label, itertools.count()

    def __call__(self, size: int) -> bytes:
        return drawn(f"{self._label} {next(self._calls)}", size)


class _Helper(Helper):
    """The helper with scripted key, noise and clock."""

    def __init__(self) -> None:
        self.book, self.now = MemoryBook(), _NOW
        anything = HelperPolicy(
            leaders=frozenset({_LEADER.public_key().public_bytes_raw()}),
            least_reports=2,
            least_noise=0.0,
        )
        super().__init__(_HELPER, self.book, anything, lambda: self.now, _Noise("helper's noise"))


def _begun(
    sum_id: bytes, agreed: TwoOperatorParameters, told: bytes
) -> tuple[Leader, OfferMade, _Helper]:
    """Return a leader whose sum phones may report to, the offer, and the helper that made it."""
    keys = LeaderKeys(_LEADER, _HELPER.public_key().public_bytes_raw(), _Noise("leader's noise"))
    leader, helper = keys(sum_id, agreed, _Noise("graph"), told), _Helper()
    request = leader.task_for(HELPER)
    if not isinstance(request, MakeOffer):
        raise TypeError(type(request))
    drawn_of_proofs = [] if agreed.proof is None else [_verify_key(sum_id)]
    with scripted(drawn_of_proofs, (_key(sum_id),), helper_module):
        made = helper.answer(request)
    if not isinstance(made, OfferMade):
        raise TypeError(type(made))
    leader.accept(HELPER, made)
    leader.advance()
    return leader, made, helper


def _key(sum_id: bytes) -> bytes:
    return drawn(f"key of sum {sum_id.hex()}", 32)


def _verify_key(sum_id: bytes) -> bytes:
    return drawn(f"verify key of sum {sum_id.hex()}", 32)


# -------------------------------------------------------------------------------------- whole sums


def _whole_sum() -> Vector:
    """Return a sum of five phones; phone 3 does not report, and phone 2's report does not open."""
    leader, made, helper = _begun(drawn("sum of two operators", 16), _SMALL, _TOLD)
    phones = {phone: _Reporting(leader, phone) for phone in _INPUTS}
    return _ended(leader, made, helper, _SMALL, phones)


def _proved_sum(
    label: str, agreed: TwoOperatorParameters, inputs: Mapping[int, list[list[int]]]
) -> Vector:
    """Return a sum of phones that prove their inputs; that of phone 2 is not valid."""
    leader, made, helper = _begun(drawn(label, 16), agreed, _TOLD)
    phones = {phone: _Proving(leader, phone, inputs) for phone in inputs}
    proof = proof_of(made.offer)
    shown = {
        "verify_key": made.verify_key.hex(),
        "chunk_length": proof.circuit.chunk_length,
        "entry_sizes": sizes(agreed).entry,
    }
    return shown | _ended(leader, made, helper, agreed, phones)


def _ended(
    leader: Leader,
    made: OfferMade,
    helper: _Helper,
    agreed: TwoOperatorParameters,
    phones: Mapping[int, _Reporting],
) -> Vector:
    """Return all of a sum to which these phones report."""
    request, secret = leader._signed_request(), helper.book.secret(made.sum_id)
    salt = leader._state.salt
    if secret is None:
        raise ValueError("the helper has kept no secret")
    for phone, each in phones.items():
        leader.accept(phone, each.report)
    leader.advance()
    listed = leader.task_for(HELPER)
    if not isinstance(listed, AddUp):
        raise TypeError(type(listed))
    helper.now = made.offer.closes
    total = helper.answer(listed)
    if not isinstance(total, HelperTotal):
        raise TypeError(type(total))
    leader.accept(HELPER, total)
    for phone, each in phones.items():
        with contextlib.suppress(MalformedMessageError):  # it does not count
            leader.accept(phone, each.report)
    leader.advance()
    return {
        "told": _TOLD.hex(),
        "width": agreed.modulus_bits,
        "key": {"private": secret.key.hex(), "public": made.offer.key.hex()},
        "make_offer": encode(request).hex(),
        "make_offer_body": request.body().hex(),
        "offer_made": encode(made).hex(),
        "offer": canonical(made.offer).hex(),
        "offer_digest": made.offer.digest().hex(),
        "phones": [each.shown() for each in phones.values()],
        "add_up": encode(listed).hex(),
        "list_body": messages.list_body(listed.offer, listed.reports).hex(),
        "helpers_noise": np.frombuffer(secret.noise, dtype="<i8").tolist(),
        "helper_total": encode(total).hex(),
        "helper_total_body": total.body().hex(),
        "leaders_noise": agreed.noise.drawn(agreed.length, _Noise("leader's noise")).tolist(),
        "leaders_salt": salt.hex(),
        "result": leader.result().tolist(),
    }


class _Reporting:
    """A phone that reports with scripted randomness."""

    def __init__(
        self, leader: Leader, phone: int, inputs: Mapping[int, list[list[int]]] = _INPUTS
    ) -> None:
        self.input = inputs[phone]
        task = leader.task_for(phone)
        if not isinstance(task, SendReport) or task.offer is None:
            raise TypeError(type(task))
        self.task, self.offer = task, task.offer.offer
        self.report_id = drawn(f"report of phone {phone}", 16)
        report, self.seed, bound = self._made(phone)
        self.sealed = _seal(
            self.seed, _key(task.sum_id), bound, self.report_id, share=report.public
        )
        self.report = msgspec.structs.replace(report, sealed=self.sealed.data)

    def _made(self, phone: int) -> tuple[PhoneReport, bytes, bytes]:
        """Return the report, what is to be sealed in it, and the digest that binds that."""
        seed = drawn(f"seed of phone {phone}", 32)
        with scripted([seed, self.report_id]):
            report = self._answered(np.array(self.input))
        return report, seed, bytes(32) if phone == _BROKEN else self.offer.digest()

    def _answered(self, values: npt.NDArray[np.int64]) -> PhoneReport:
        return ReportingParticipant(self.task, values, _TOLD).answer(self.task)

    def shown(self) -> Vector:
        """Return all of it."""
        return {
            "input": self.input,
            "seed": self.seed.hex(),
            "ephemeral": self.sealed.ephemeral.hex(),
            "opens": self.task.index != _BROKEN,
            "task": encode(self.task).hex(),
            "report": encode(self.report).hex(),
        }


class _Proving(_Reporting):
    """A phone that proves its input with scripted randomness."""

    def _made(self, phone: int) -> tuple[PhoneReport, bytes, bytes]:
        proof, values = proof_of(self.offer), np.array(self.input)
        self.random = drawn(f"randomness of phone {phone}", proof.rand_bytes)
        valid = values * (phone != _FALSE)
        with scripted([bytes(32), self.report_id, self.random]):
            report = self._answered(valid)
        shape, row = proof.shape, values.reshape(-1)
        encoded = shape.fixed(valid.reshape(-1))
        encoded[: proof.length] = from_signed(row)
        signed = functools.partial(shape.signed, row)
        made = proof._split(encoded, signed, self.report_id, self.random)
        if phone != _FALSE and (made.public_share, made.leader_share) != (
            report.public,
            report.share,
        ):
            raise ValueError("an input that was proved twice differs")
        report = msgspec.structs.replace(report, public=made.public_share, share=made.leader_share)
        return report, made.helper_share, self.offer.digest()

    def shown(self) -> Vector:
        """Return all of it."""
        return {
            "input": self.input,
            "randomness": self.random.hex(),
            "sealed_share": self.seed.hex(),
            "ephemeral": self.sealed.ephemeral.hex(),
            "counts": self.task.index != _FALSE,
            "task": encode(self.task).hex(),
            "report": encode(self.report).hex(),
        }


# ---------------------------------------------------------------------------------- what is refused


def _refused() -> list[Vector]:
    """Return offers that a phone refuses, each with the rule that it says, and some it accepts."""
    task, proved = (
        _opening("sum of two operators", _SMALL),
        _opening("sum of proved ballots", _PROVED),
    )
    unproved = _changed(proved, proof=None)
    return [
        *(_case("sum", why, rule, now, each) for why, rule, now, each in _offers_to_refuse(task)),
        *(
            _case("proved_sum", why, rule, _NOW, each, proves)
            for why, rule, each, proves in (
                ("nothing: it proves its ballot", None, proved, True),
                ("it cannot prove its ballot", Rule.PROOFS, proved, False),
                ("ballots need not be proved", Rule.WRONG_OFFER, unproved, True),
                (
                    "more ones than agreed",
                    Rule.WRONG_OFFER,
                    _changed(proved, proof=Counts(1, 3, 6)),
                    True,
                ),
            )
        ),
    ]


def _opening(label: str, agreed: TwoOperatorParameters) -> SendReport:
    leader, _, _ = _begun(drawn(label, 16), agreed, _TOLD)
    task = leader.task_for(0)
    if not isinstance(task, SendReport):
        raise TypeError(type(task))
    return task


def _changed(task: SendReport, /, **fields: object) -> SendReport:
    """Return a task whose offer has other parameters of the sum, signed by both operators."""
    parameters = msgspec.structs.replace(task.parameters, **fields)
    return _with(task, parameters=parameters)


def _with(task: SendReport, /, **fields: object) -> SendReport:
    """Return a task with another offer, signed by those whom it names."""
    if task.offer is None:
        raise TypeError(task)
    offer = msgspec.structs.replace(task.offer.offer, **fields)
    return msgspec.structs.replace(task, offer=_signed(offer))


def _case(
    about: str, why: str, rule: str | None, now: float, task: SendReport, proves: bool = True
) -> Vector:
    leaders, helpers = ([key.public_key().public_bytes_raw()] for key in (_LEADER, _HELPER))
    if task.offer is not None and task.offer.offer.helper == task.offer.offer.leader:
        helpers = leaders
    agreed = _SMALL if about == "sum" else _PROVED
    with mock.patch.object(acceptance, "available", return_value=proves):
        refusals = list(
            refusals_of_offer(task, agreed, hashlib.sha256(_TOLD).digest(), leaders, helpers, now)
        )
    first = refusals[0].rule if refusals else None
    if first != rule:
        raise ValueError(f"{why}: refused by {first} where {rule} was meant")
    return {
        "of": about,
        "why": why,
        "rule": rule,
        "now": now,
        "proves": proves,
        "leaders": [key.hex() for key in leaders],
        "helpers": [key.hex() for key in helpers],
        "task": encode(task).hex(),
    }


def _offers_to_refuse(task: SendReport) -> Iterator[tuple[str, str | None, float, SendReport]]:
    if task.offer is None:
        raise TypeError(task)
    offer = task.offer.offer
    for why, now in (
        ("nothing: it is accepted", _NOW),
        ("nothing: an hour before it opens", offer.opens - LARGEST_SKEW),
        ("nothing: an hour after it closes", offer.closes + LARGEST_SKEW),
    ):
        yield why, None, now, task
    stranger = _stranger.public_key().public_bytes_raw()
    for why, rule, given in (
        ("no offer", Rule.WRONG_OFFER, msgspec.structs.replace(task, offer=None)),
        ("a leader that the app does not name", Rule.UNKNOWN_HELPER, _with(task, leader=stranger)),
        ("a helper that the app does not name", Rule.UNKNOWN_HELPER, _with(task, helper=stranger)),
        ("leader and helper in one", Rule.UNKNOWN_HELPER, _with(task, helper=offer.leader)),
        (
            "signatures that have changed places",
            Rule.WRONG_OFFER,
            msgspec.structs.replace(task, offer=_signed(offer, swapped=True)),
        ),
        ("less noise", Rule.WEAK_NOISE, _changed(task, noise=WholeGaussian(50 * 2**16 - 1))),
        ("noise of another law", Rule.WEAK_NOISE, _changed(task, noise=WholeLaplace(2**30))),
        (
            "more noise than was agreed",
            Rule.WRONG_OFFER,
            _changed(task, noise=WholeGaussian(50 * 2**16 + 1)),
        ),
        ("a smaller crowd", Rule.TOO_FEW, _changed(task, least=2)),
        ("another bound", Rule.WRONG_OFFER, _changed(task, bound=101)),
        ("another sum", Rule.WRONG_OFFER, _with(task, sum_id=bytes(16))),
        ("another task", Rule.WRONG_OFFER, _with(task, task=bytes(32))),
        ("another version", Rule.WRONG_OFFER, _with(task, version=2)),
        ("another suite", Rule.WRONG_OFFER, _with(task, suite=2)),
        ("a key of low order", Rule.WRONG_OFFER, _with(task, key=bytes(32))),
        (
            "a key of low order, larger than the prime",
            Rule.WRONG_OFFER,
            _with(task, key=(2**255 - 18).to_bytes(32, "little")),
        ),
        ("a longer window", Rule.CLOSED, _with(task, closes=offer.closes + 1)),
    ):
        yield why, rule, _NOW, given
    for why, now in (
        ("more than an hour before it opens", offer.opens - LARGEST_SKEW - 1),
        ("more than an hour after it closes", offer.closes + LARGEST_SKEW + 1),
    ):
        yield why, Rule.CLOSED, now, task


_stranger = Ed25519PrivateKey.from_private_bytes(drawn("stranger", 32))


def _signed(offer: Offer, swapped: bool = False) -> SignedOffer:
    """Return an offer that those whom it names have signed."""
    keys = {key.public_key().public_bytes_raw(): key for key in (_LEADER, _HELPER, _stranger)}
    helper, leader = (
        messages.sign(keys[identity], what, offer.digest())
        for identity, what in (
            (offer.helper, messages.HELPERS_OFFER),
            (offer.leader, messages.LEADERS_OFFER),
        )
    )
    return SignedOffer(
        offer=offer, helper=leader if swapped else helper, leader=helper if swapped else leader
    )
