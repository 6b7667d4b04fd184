"""The published vectors of sums by two operators, worked out again from the document alone."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from support import textbook_operators as textbook
from support.textbook_phone import canonical, packed, public_of, unpacked, vector_packed
from support.textbook_prio3 import CountsBook, NormBook, Textbook

from earshot_protocol.messages import (
    AnyParameters,
    decode_answer,
    decode_helper_answer,
    decode_helper_task,
    decode_task,
)
from earshot_protocol.phases.plan import SecureSum, SumPartTask
from earshot_protocol.prio3 import field
from earshot_protocol.prio3.derivation import Party
from earshot_protocol.prio3.prio3 import Prio3, Received
from earshot_protocol.prio3.shapes import Counts, Norm, ballot
from earshot_protocol.privacy.sum_noise import NoiseOfOperators, WholeLaplace
from earshot_protocol.secure_sum import encoding
from earshot_protocol.two_operators import acceptance, messages, shares
from earshot_protocol.two_operators.acceptance import refusals_of_offer
from earshot_protocol.two_operators.messages import (
    AddUp,
    HelperTotal,
    MakeOffer,
    OfferMade,
    PhoneReport,
    SendReport,
)
from earshot_protocol.two_operators.parameters import TwoOperatorParameters
from earshot_protocol.two_operators.sizes import sizes
from earshot_protocol.wire import encode

VECTORS = json.loads(
    (Path(__file__).resolve().parents[2] / "docs" / "vectors" / "two_operators.json").read_text(
        "utf-8"
    )
)
SUM, OPERATORS = VECTORS["sum"], VECTORS["operators"]
PROVED = VECTORS["proved_sum"], VECTORS["proved_vectors"]


def of(text: str) -> bytes:
    return bytes.fromhex(text)


def private(who: str) -> bytes:
    return of(OPERATORS[who]["private"])


def public(who: str) -> bytes:
    return of(OPERATORS[who]["public"])


def test_operators_have_the_keys_that_are_stated() -> None:
    for who in ("leader", "helper"):
        pair = Ed25519PrivateKey.from_private_bytes(private(who))
        assert pair.public_key().public_bytes_raw() == public(who)
    assert public_of(of(SUM["key"]["private"])).hex() == SUM["key"]["public"]


# ------------------------------------------------------------------------------- RFC 9180 itself


def test_the_textbook_seals_as_rfc_9180_does() -> None:
    """Appendix A.1.1: base mode of the same suite, and its first message without its text's aad."""
    info = of("4f6465206f6e2061204772656369616e2055726e")
    enc = of("37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431")
    recipient = of("4612c550263fc8ad58375df3f557aac531d26850903e55a9f23f21d8534e8ac8")
    shared = X25519PrivateKey.from_private_bytes(
        of("52c4a758a802cd8b936eceea314432798d5baf2d7e9235dc084ab1b9cfa2f736")
    )
    assert shared.public_key().public_bytes_raw() == enc
    public_key = X25519PrivateKey.from_private_bytes(recipient).public_key()
    keys = textbook.hpke_keys(shared.exchange(public_key), enc, public_key.public_bytes_raw(), info)
    assert keys == (of("4531685d41d65f03dc48f6b8302c05b0"), of("56d890e5accaaf011cff4b7d"))


# ------------------------------------------------------------------------------ parameters of sums


@pytest.mark.parametrize("case", VECTORS["widths"], ids=lambda case: f"{case['width']} bits")
def test_reach_and_width(case: dict[str, Any]) -> None:
    assert textbook.reach(case["noise"], case["length"]) == case["reach"]
    given = {name: case[name] for name in ("phones", "bound", "noise")}
    terms = given | {"shape": [case["length"]], "least": 2, "window": 1.0}
    assert textbook.width(terms) == case["width"]
    assert msgspec.convert(terms, TwoOperatorParameters).modulus_bits == case["width"]
    noise = msgspec.convert(case["noise"], NoiseOfOperators)
    assert noise.reach(case["length"]) == case["reach"]


@pytest.mark.parametrize("case", VECTORS["sums"], ids=lambda case: case["part"])
def test_parameters_of_a_sum(case: dict[str, Any]) -> None:
    given = case["parameters"]
    assert given["summation"] in ("two-operators", "two-operators-unproved")
    assert textbook.derived(given, case["part"], case["sum"]["shape"]) == case["sum"]
    assert textbook.width(case["sum"]) == case["width"]
    parameters = msgspec.convert(given, AnyParameters)
    part = parameters.plan().part(case["part"])
    assert isinstance(part, SecureSum)
    ours = parameters.sum_parameters(part, tuple(case["sum"]["shape"]))
    assert ours == msgspec.convert(case["sum"], TwoOperatorParameters)


def zcdp_epsilon(rho: float, delta: float) -> float:
    """By Canonne, Kamath and Steinke 2020, Proposition 12, over a grid of orders."""
    orders: list[float] = np.geomspace(1.0001, 10**6, 200_000).tolist()
    return min(
        order * rho + math.log1p(-1 / order) - math.log(delta * order) / (order - 1)
        for order in orders
    )


@pytest.mark.parametrize("case", VECTORS["releases"], ids=lambda case: case["parameters"]["type"])
def test_what_a_phase_costs_follows_from_one_operators_noise(case: dict[str, Any]) -> None:
    given, seen = case["parameters"], 0
    ours = msgspec.to_builtins(msgspec.convert(given, AnyParameters).plan().releases())
    costs = [(each.pop("epsilon"), each.pop("delta")) for each in ours]
    for each, cost, kept in zip(ours, costs, case["releases"], strict=True):
        assert each.items() <= kept.items()
        assert cost == pytest.approx((kept["epsilon"], kept["delta"]), rel=1e-9)
    for release in case["releases"]:
        step, whole = release["step"], release["unit"] == "phone"
        if step in ("cluster", "select"):
            continue
        seen += 1
        noise = textbook.derived(given, step, [3, 3])["noise"]
        if given["type"] == "learning":
            most = textbook.derived(given, step, [3, 3])["bound"]
            scale = 2 / (most if whole else 2)
            exact = given["budget"][step.replace(" ", "_")]
            assert release["epsilon"] == pytest.approx(exact / scale, rel=1e-4)
            assert release["delta"] == 0.0
            continue
        delta = given.get("delta", 1e-6)
        if given["type"] == "labelling":
            samples, weight = given["samples"]["rows"], given["largest_weight"]
            moved = 1 if whole or step == "check" else 2
            squared = weight**2 * moved * samples
        elif whole:
            squared = 4096**2
        else:
            continue  # the distance of one recording depends on the number of entries
        rho = squared / (2 * noise["fine_variance"] / 65_536)
        assert release["epsilon"] == pytest.approx(zcdp_epsilon(rho, delta), rel=1e-3)
        assert release["delta"] == delta
    assert seen >= 2


# ---------------------------------------------------------------------------------------- shares


@pytest.mark.parametrize("case", VECTORS["shares"], ids=lambda case: f"{case['width']} bits")
def test_both_shares_of_an_input(case: dict[str, Any]) -> None:
    bits, values = case["width"], [entry for row in case["input"] for entry in row]
    theirs = textbook.helpers_share(of(case["seed"]), len(values), bits)
    assert theirs == case["helpers_share"]
    ours = [(value - word) % 2**bits for value, word in zip(values, theirs, strict=True)]
    assert ours == case["leaders_share"]
    assert vector_packed(ours, bits).hex() == case["packed"]
    given = {name: case[name] for name in ("phones", "bound", "noise")}
    terms = given | {"shape": [2, 3], "least": 2, "window": 1.0}
    assert textbook.width(terms) == bits
    agreed = msgspec.convert(terms, TwoOperatorParameters)
    words = shares.helper_shares([of(case["seed"])], agreed)
    assert [int(word) % 2**bits for word in words] == theirs
    assert (
        encoding.pack(encoding.encode(np.array(case["input"]), agreed) - words, bits).hex()
        == (case["packed"])
    )


# ---------------------------------------------------------------------------------------- offers


def checked_offer(request: bytes, made: bytes, offer: bytes, digest: bytes) -> dict[str, Any]:
    """Make both operators' part of an offer again; return the signed offer."""
    asked, said = unpacked(request), unpacked(made)
    body = textbook.body_of(asked)
    assert asked["signature"] == textbook.signature(private("leader"), b"leader's request", body)
    assert asked["leader"] == public("leader")
    assert said["offer"]["helper"] == public("helper")
    assert canonical(said["offer"]) == offer
    assert textbook.digest_of(said["offer"]) == digest
    signed = textbook.signature(private("helper"), b"helper's offer", digest)
    assert said["signature"] == signed
    assert said["offer"]["task"] == asked["task"]
    assert said["offer"]["parameters"] == asked["parameters"]
    assert said["offer"]["closes"] - said["offer"]["opens"] == asked["parameters"]["window"]
    assert said["offer"]["answer_until"] - said["offer"]["closes"] == asked["patience"]
    theirs = textbook.signature(private("leader"), b"leader's offer", digest)
    return {"offer": said["offer"], "helper": signed, "leader": theirs}


@pytest.mark.parametrize("case", VECTORS["offers"], ids=lambda case: case["parameters"]["type"])
def test_an_offer_of_a_sum_of_a_phase(case: dict[str, Any]) -> None:
    task, told = unpacked(of(case["task"])), of(case["told"])
    ours = decode_task(of(case["task"]))
    assert isinstance(ours, SumPartTask)
    parameters = msgspec.convert(case["parameters"], AnyParameters)
    assert ours.told(parameters) == ours.for_phone(7).told(parameters) == told
    assert textbook.told_in(unpacked(encode(parameters)), task) == told  # type: ignore[arg-type]
    assert task["advertise"]["offer"]["offer"]["task"].hex() == case["task_digest"]
    signed = checked_offer(
        of(case["request"]), of(case["made"]), of(case["offer"]), of(case["offer_digest"])
    )
    assert task["advertise"]["offer"] == signed
    assert textbook.body_of(unpacked(of(case["request"]))) == of(case["request_body"])
    part = parameters.plan().part_of(ours)
    assert isinstance(part, SecureSum)
    terms = signed["offer"]["parameters"]
    assert textbook.derived(case["parameters"], part.name, terms["shape"]) == terms
    assert (
        list(
            textbook.refusals(
                task["advertise"],
                terms,
                told,
                [public("leader")],
                [public("helper")],
                1_800_000_000.0,
            )
        )
        == []
    )


# ------------------------------------------------------------------------------------- a whole sum


@pytest.mark.parametrize("case", [SUM, *PROVED], ids=["sum", "ballots", "vectors"])
def test_the_offer_of_the_sum(case: dict[str, Any]) -> None:
    signed = checked_offer(
        of(case["make_offer"]), of(case["offer_made"]), of(case["offer"]), of(case["offer_digest"])
    )
    for phone in case["phones"]:
        assert unpacked(of(phone["task"]))["offer"] == signed
    asked, made = (
        decode_helper_task(of(case["make_offer"])),
        decode_helper_answer(of(case["offer_made"])),
    )
    assert isinstance(asked, MakeOffer)
    assert isinstance(made, OfferMade)
    assert asked.body() == of(case["make_offer_body"])
    noise = np.array(case["leaders_noise"], dtype="<i8").tobytes()
    committed = b"earshot two operators: leader's noise" + of(case["leaders_salt"]) + noise
    assert asked.commitment == hashlib.sha256(committed).digest()
    assert made.offer.digest().hex() == case["offer_digest"]
    assert made.verify_key.hex() == case.get("verify_key", "")


def report_of(phone: dict[str, Any]) -> dict[str, Any]:
    report = unpacked(of(phone["report"]))
    assert isinstance(report, dict)
    return report


@pytest.mark.parametrize("phone", SUM["phones"], ids=lambda phone: phone["seed"][:6])
def test_a_report_from_the_document_alone(phone: dict[str, Any]) -> None:
    task, given = unpacked(of(phone["task"])), report_of(phone)
    digest = of(SUM["offer_digest"]) if phone["opens"] else bytes(32)
    info = textbook.bound_to(digest, given["report_id"])
    seed, key = of(phone["seed"]), of(SUM["key"]["public"])
    sealed = textbook.sealed_seed(seed, key, of(phone["ephemeral"]), info)
    values = [entry for row in phone["input"] for entry in row]
    report = textbook.report(task, values, seed, given["report_id"], sealed)
    assert packed(report).hex() == phone["report"]
    mine = X25519PrivateKey.from_private_bytes(of(SUM["key"]["private"]))
    opened = shares.unseal(sealed, mine, of(SUM["offer_digest"]), given["report_id"])
    assert opened == (seed if phone["opens"] else None)
    again = shares.seal(seed, mine.public_key(), of(SUM["offer_digest"]), given["report_id"])
    bound = textbook.bound_to(of(SUM["offer_digest"]), given["report_id"])
    assert textbook.opened_seed(again, of(SUM["key"]["private"]), bound) == seed
    ours = decode_answer(of(phone["report"]))
    assert isinstance(ours, PhoneReport)
    assert ours.share == given["share"]


def test_a_helper_from_the_document_alone_gives_the_total() -> None:
    offer, listed = unpacked(of(SUM["offer"])), unpacked(of(SUM["add_up"]))
    reports = [report_of(phone) for phone in SUM["phones"]]
    assert listed["reports"] == b"".join(each["report_id"] + each["sealed"] for each in reports)
    body = textbook.list_body(listed["offer"], listed["reports"])
    assert body.hex() == SUM["list_body"]
    assert listed["signature"] == textbook.signature(private("leader"), b"leader's list", body)
    refused, total = textbook.helpers_total(
        offer, listed["reports"], of(SUM["key"]["private"]), SUM["helpers_noise"]
    )
    assert refused == reports[2]["report_id"]
    answer = {
        "type": "helper-total",
        "sum_id": offer["sum_id"],
        "offer": of(SUM["offer_digest"]),
        "reports": of(SUM["list_body"])[40:],
        "refused": refused,
        "total": total,
        "verifiers": b"",
    }
    body = textbook.body_of(answer)
    assert body.hex() == SUM["helper_total_body"]
    signature = textbook.signature(private("helper"), b"helper's total", body)
    assert packed(answer | {"signature": signature}).hex() == SUM["helper_total"]


def test_a_leader_from_the_document_alone_gets_the_result() -> None:
    offer, total = unpacked(of(SUM["offer"])), unpacked(of(SUM["helper_total"]))
    reports = [report_of(phone) for phone in SUM["phones"]]
    counted = [each for each in reports if each["report_id"] != total["refused"]]
    assert len(counted) == len(reports) - 1
    published = textbook.result(offer, counted, total["total"], SUM["leaders_noise"])
    assert published == [entry for row in SUM["result"] for entry in row]
    inputs = [np.array(phone["input"]) for phone in SUM["phones"] if phone["opens"]]
    noise = np.array(SUM["helpers_noise"]) + np.array(SUM["leaders_noise"])
    assert published == (sum(inputs).reshape(-1) + noise).tolist()  # type: ignore[union-attr]


def test_our_messages_of_the_sum_are_those() -> None:
    listed = decode_helper_task(of(SUM["add_up"]))
    total = decode_helper_answer(of(SUM["helper_total"]))
    assert isinstance(listed, AddUp)
    assert isinstance(total, HelperTotal)
    assert messages.list_body(listed.offer, listed.reports).hex() == SUM["list_body"]
    assert total.body().hex() == SUM["helper_total_body"]
    for message, kept in ((listed, "add_up"), (total, "helper_total")):
        assert encode(message).hex() == SUM[kept]
    messages.check_signature(
        public("leader"), messages.LEADERS_LIST, of(SUM["list_body"]), listed.signature
    )
    messages.check_signature(
        public("helper"), messages.HELPERS_TOTAL, total.body(), total.signature
    )


# --------------------------------------------------------------------------- a sum that is proved

PRIME = 2**66 * 4611686018427387897 + 1


class Proved(NamedTuple):
    """A sum of proved inputs; nothing of it comes from what our leader and helper call."""

    given: dict[str, Any]
    terms: dict[str, Any]
    book: Textbook
    proof: Prio3


def proved(given: dict[str, Any]) -> Proved:
    """The sum as the document states it."""
    terms = unpacked(of(given["offer"]))["parameters"]
    shape: Counts | Norm = msgspec.convert(terms["proof"], Counts | Norm)
    length, digest = textbook.length(terms), of(given["offer_digest"])
    chunk = textbook.chunk_length(terms)
    bits = msgspec.structs.astuple(shape)
    book = CountsBook(length, *bits) if isinstance(shape, Counts) else NormBook(length)
    proof = Prio3(shape, length, chunk_length=chunk, context=digest)
    return Proved(given, terms, Textbook(book, chunk, digest), proof)


SUMS = [proved(each) for each in PROVED]


def numbers(data: bytes) -> list[int]:
    """Elements of the field, 16 bytes each."""
    return [int.from_bytes(data[at : at + 16], "little") for at in range(0, len(data), 16)]


@pytest.mark.parametrize("each", SUMS, ids=["ballots", "vectors"])
def test_sizes_of_proofs_from_the_document_alone(each: Proved) -> None:
    known = textbook.sizes(each.terms)
    assert each.given["chunk_length"] == Prio3(each.proof.shape, 6).circuit.chunk_length
    assert each.given["entry_sizes"] == [
        16,
        *(known[name] for name in ("sealed", "public", "verifier")),
    ]
    for phone in each.given["phones"]:
        given = report_of(phone)
        assert {name: len(given[name]) for name in ("share", "public", "sealed")}.items() <= (
            known.items()
        )


def test_sizes_of_proofs_of_any_shape_from_the_document_alone() -> None:
    ballots = ((1, 1), (2, 2), (6, 2), (30, 3), (640, 1), (1000, 20), (4096, 4096))
    inputs: list[tuple[int, Counts | Norm]] = [(each, ballot(each, ones)) for each, ones in ballots]
    inputs += [(60, Counts(2, 3, 15)), (8, Counts(3, 5, 1)), (1, Norm()), (640, Norm())]
    for entries, shape in inputs:
        terms = {"shape": [entries], "proof": msgspec.to_builtins(shape)}
        agreed = TwoOperatorParameters(5, (entries,), 1, WholeLaplace(1), 2, 1.0, shape)
        stated = textbook.sizes(terms)
        assert sizes(agreed).entry == (16, 112, stated["public"], stated["verifier"])
        proof = Prio3(shape, entries)
        assert proof.circuit.chunk_length == textbook.chunk_length(terms)
        assert proof.leader_share_bytes == stated["share"]


@pytest.mark.parametrize(
    ("each", "phone"),
    [(each, phone) for each in SUMS for phone in range(len(each.given["phones"]))],
    ids=lambda value: value.proof.shape.valid if isinstance(value, Proved) else value,
)
def test_a_proved_report_opens_and_is_that_of_its_randomness(each: Proved, phone: int) -> None:
    case = each.given["phones"][phone]
    given, random, digest = report_of(case), of(case["randomness"]), of(each.given["offer_digest"])
    helpers = of(case["sealed_share"])
    assert helpers == random[:64]
    assert given["share"][-32:] == random[64:96]
    info = textbook.bound_to(digest, given["report_id"], given["public"])
    sealed = textbook.sealed_seed(
        helpers, of(each.given["key"]["public"]), of(case["ephemeral"]), info
    )
    assert sealed == given["sealed"]
    private_key = of(each.given["key"]["private"])
    assert textbook.opened_seed(sealed, private_key, info) == helpers
    without = textbook.bound_to(digest, given["report_id"])
    assert textbook.opened_seed(sealed, private_key, without) is None
    mine = X25519PrivateKey.from_private_bytes(private_key)
    about = (mine, digest, given["report_id"])
    assert shares.unseal(sealed, *about, given["public"]) == helpers
    assert shares.unseal(sealed, *about) is None
    ours = decode_answer(of(case["report"]))
    assert isinstance(ours, PhoneReport)
    assert encode(ours).hex() == case["report"] == packed(given).hex()
    values = np.array(case["input"]).reshape(-1)
    if case["counts"]:
        made = (given["public"], given["share"], helpers)
        assert each.book.shard(values.tolist(), given["report_id"], random) == made
        assert each.proof.shard(values, given["report_id"], random) == made
    else:
        assert values.max() == 2 or values @ values == 2**24


def received(phone: dict[str, Any], share: bytes) -> Received:
    given = report_of(phone)
    return Received(given["report_id"], given["public"], share)


@pytest.mark.parametrize("each", SUMS, ids=["ballots", "vectors"])
def test_a_proved_list_and_total_from_what_the_document_states(each: Proved) -> None:
    case, proof = each.given, each.proof
    phones, key = case["phones"], of(case["verify_key"])
    listed, total = unpacked(of(case["add_up"])), unpacked(of(case["helper_total"]))
    leaders = proof.verifiers(
        Party.LEADER, key, [received(phone, report_of(phone)["share"]) for phone in phones]
    )
    helpers = proof.verifiers(
        Party.HELPER, key, [received(phone, of(phone["sealed_share"])) for phone in phones]
    )
    reports = [report_of(phone) for phone in phones]
    for phone, given, ours, theirs in zip(
        phones, reports, leaders.shares, helpers.shares, strict=True
    ):
        about = (key, given["report_id"], given["public"])
        assert each.book.verifier_share(0, *about, given["share"]) == ours.tobytes()
        assert each.book.verifier_share(1, *about, of(phone["sealed_share"])) == theirs.tobytes()
    assert listed["reports"] == b"".join(
        given["report_id"] + given["sealed"] + given["public"] + share.tobytes()
        for given, share in zip(reports, leaders.shares, strict=True)
    )
    body = textbook.list_body(listed["offer"], listed["reports"])
    assert body.hex() == case["list_body"]
    assert int.from_bytes(body[32:40], "big") == len(phones) * sum(case["entry_sizes"])
    assert listed["signature"] == textbook.signature(private("leader"), b"leader's list", body)
    settled = proof.settle(helpers, [share.tobytes() for share in leaders.shares])
    counts = [phone["counts"] for phone in phones]
    assert settled.accepted.tolist() == counts
    assert total["refused"] == b"".join(
        given["report_id"] for given, counted in zip(reports, counts, strict=True) if not counted
    )
    assert total["verifiers"] == helpers.shares[settled.accepted].tobytes()
    noisy = zip(numbers(field.encode(settled.total)), case["helpers_noise"], strict=True)
    assert numbers(total["total"]) == [(entry + noise) % PRIME for entry, noise in noisy]
    said = textbook.body_of(total)
    assert said.hex() == case["helper_total_body"]
    assert total["signature"] == textbook.signature(private("helper"), b"helper's total", said)
    ours = proof.settle(leaders, [share.tobytes() for share in helpers.shares])
    halves = zip(
        numbers(total["total"]),
        numbers(field.encode(ours.total)),
        case["leaders_noise"],
        strict=True,
    )
    published = [sum(entry) % PRIME for entry in halves]
    assert [entry - PRIME * (entry > PRIME // 2) for entry in published] == [
        entry for row in case["result"] for entry in row
    ]
    ballots = [np.array(phone["input"]) for phone in phones if phone["counts"]]
    noise = np.array(case["helpers_noise"]) + np.array(case["leaders_noise"])
    counted = np.sum(ballots, axis=0).reshape(-1) + noise
    assert counted.tolist() == np.array(case["result"]).reshape(-1).tolist()


# --------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize("case", VECTORS["refused"], ids=lambda case: case["why"])
def test_a_phone_refuses_by_name(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    about = VECTORS[case["of"]]
    told, now = of(about["told"]), case["now"]
    leaders, helpers = ([of(key) for key in case[who]] for who in ("leaders", "helpers"))
    expected, opening = unpacked(of(about["offer"]))["parameters"], unpacked(of(case["task"]))
    theirs = list(textbook.refusals(opening, expected, told, leaders, helpers, now, case["proves"]))
    monkeypatch.setattr(acceptance, "available", lambda: case["proves"])
    task = msgspec.msgpack.decode(of(case["task"]), type=SendReport)
    agreed = msgspec.convert(expected, TwoOperatorParameters)
    ours = [
        refusal.rule
        for refusal in refusals_of_offer(
            task, agreed, hashlib.sha256(told).digest(), leaders, helpers, now
        )
    ]
    assert theirs[:1] == ours[:1] == ([case["rule"]] if case["rule"] else [])
    assert theirs == ours


def test_every_rule_of_an_offer_has_a_vector() -> None:
    seen = {case["rule"] for case in VECTORS["refused"]}
    named = {"unknown_helper", "wrong_offer", "weak_noise", "too_few", "closed", "proofs"}
    assert seen == {None, *named}
