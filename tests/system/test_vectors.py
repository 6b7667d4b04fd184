"""The published test vectors: current, true of our code, and reproducible from the document alone.

Independent judges are `textbook_phone`, written from docs/protocol.md, and what stands here.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import example, given
from hypothesis import strategies as st
from support import signed
from support import textbook_phone as textbook

from earshot_protocol import api, signatures
from earshot_protocol.errors import MalformedMessageError
from earshot_protocol.messages import (
    AnyAnswer,
    AnyParameters,
    AnyTask,
    decode_answer,
    decode_helper_answer,
    decode_helper_task,
    decode_task,
)
from earshot_protocol.phases.learning import Budget
from earshot_protocol.phases.plan import SecureSum, SumPartTask
from earshot_protocol.privacy import accounting
from earshot_protocol.privacy.sum_noise import NoiseOfOperators
from earshot_protocol.rules import Rule
from earshot_protocol.secure_sum import decoding, encoding, masks, shamir
from earshot_protocol.secure_sum.aggregator import Aggregator
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.secure_sum.messages import SEALED_SHARES_BYTES, AdvertiseKeys, SumAnswer
from earshot_protocol.secure_sum.parameters import SumParameters, choose
from earshot_protocol.two_operators.messages import (
    AddUp,
    HelperTotal,
    MakeOffer,
    Offer,
    OfferMade,
    SendReport,
    SignedOffer,
)
from earshot_protocol.two_operators.parameters import TwoOperatorParameters
from earshot_protocol.two_operators.refusals import HelperRefusalError
from earshot_protocol.two_operators.transport import OFFER_PATH, PART_PATH, TOTAL_PATH, ListPart
from earshot_protocol.wire import Matrix, encode
from earshot_server.api.problems import HTTP_KINDS, INTERNAL, KINDS

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "vectors"
DOCUMENT = FOLDER.parent / "protocol.md"
NAMES = sorted(path.name for path in FOLDER.glob("*.json"))
BODIES = {
    body.__name__: body for body in (api.Enrol, api.Enrolled, api.AskTask, api.Refuse, api.Problem)
}


def vectors(name: str) -> Any:
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def of(text: str) -> bytes:
    return bytes.fromhex(text)


def same(made: Any, kept: Any) -> bool:
    """Equal, where real numbers may differ by what libraries differ in their last digits."""
    if isinstance(made, dict) and isinstance(kept, dict):
        return made.keys() == kept.keys() and all(same(made[key], kept[key]) for key in kept)
    if isinstance(made, list) and isinstance(kept, list):
        return len(made) == len(kept) and all(map(same, made, kept))
    if isinstance(made, float) and isinstance(kept, float):
        return math.isclose(made, kept, rel_tol=1e-9, abs_tol=1e-5)
    return type(made) is type(kept) and bool(made == kept)


def test_the_generator_makes_what_is_checked_in(tmp_path: Path) -> None:
    # S603: the program is ours.
    subprocess.run(  # noqa: S603
        [sys.executable, str(FOLDER / "generate.py"), str(tmp_path)], check=True, timeout=120
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == NAMES
    for name in NAMES:
        made = json.loads((tmp_path / name).read_text(encoding="utf-8"))
        assert same(made, vectors(name)), name


def structs() -> Iterator[Any]:
    """Everything that travels between phone and server, and between leader and helper."""
    for union in (AnyTask, AnyAnswer, AnyParameters):
        yield from union.__args__
    yield from (*BODIES.values(), AdvertiseKeys, SumParameters, Budget, Matrix)
    yield accounting.Release
    yield from (SendReport, SignedOffer, Offer, TwoOperatorParameters)
    yield from NoiseOfOperators.__args__
    yield from (MakeOffer, OfferMade, AddUp, ListPart, HelperTotal)


def test_the_document_names_every_message_field_and_problem() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    named = {f"vectors/{name}" for name in NAMES}
    named |= {field for struct in structs() for field in struct.__struct_encode_fields__}
    named |= {rule.value for rule in Rule} | {name.value for name in SummationName}
    named |= {refusal.name.replace("_", "-") for refusal in HelperRefusalError.__subclasses__()}
    named |= {OFFER_PATH, PART_PATH, TOTAL_PATH}
    named |= {struct.__struct_config__.tag for struct in structs()} - {None}
    named |= {kind.name for kind in (*KINDS.values(), *HTTP_KINDS.values(), INTERNAL)}
    assert sorted(name for name in named if f"`{name}`" not in text) == []
    for kind in (*KINDS.values(), *HTTP_KINDS.values(), INTERNAL):
        (statuses,) = re.findall(rf"^\| [^|]*`{kind.name}`[^|]* \| ([0-9, ]+) \|", text, re.M)
        assert str(kind.status) in statuses


# --------------------------------------------------------------------------------- signatures

SIGNATURES = vectors("signatures.json")


@pytest.mark.parametrize("case", SIGNATURES["signed"], ids=lambda case: case["path"])
def test_a_signed_request_from_strings_alone(case: dict[str, Any]) -> None:
    digest = base64.b64encode(hashlib.sha256(of(case["body"])).digest()).decode()
    covered = '("@method" "@path" "content-type" "content-digest")'
    inside = f'{covered};created={case["created"]};keyid="{case["keyid"]}";alg="ed25519"'
    base = (
        f'"@method": POST\n"@path": {case["path"]}\n"content-type": {case["content_type"]}\n'
        f'"content-digest": sha-256=:{digest}:\n"@signature-params": {inside}'
    )
    assert base == case["signature_base"]
    key = Ed25519PrivateKey.from_private_bytes(of(SIGNATURES["private_key"]))
    signature = base64.b64encode(key.sign(base.encode())).decode()
    expected = {
        "Content-Digest": f"sha-256=:{digest}:",
        "Signature-Input": f"earshot={inside}",
        "Signature": f"earshot=:{signature}:",
    }
    assert expected == case["fields"]
    Ed25519PublicKey.from_public_bytes(of(SIGNATURES["public_key"])).verify(
        base64.b64decode(signature), base.encode()
    )


def verify(case: dict[str, Any]) -> None:
    signed.verify(
        of(SIGNATURES["public_key"]),
        case["fields"],
        case["now"],
        case["path"],
        api.MESSAGEPACK,
        of(case["body"]),
    )


@pytest.mark.parametrize("case", SIGNATURES["accepted_until"], ids=["oldest", "newest"])
def test_a_request_is_accepted_within_the_skew(case: dict[str, Any]) -> None:
    verify(case)


@pytest.mark.parametrize("case", SIGNATURES["refused"], ids=lambda case: case["why"])
def test_a_request_is_refused(case: dict[str, Any]) -> None:
    kinds = {
        "signature": signatures.SignatureError,
        "stale-signature": signatures.StaleSignatureError,
    }
    with pytest.raises(signatures.SignatureError) as refused:
        verify(case)
    assert type(refused.value) is kinds[case["kind"]]


# ----------------------------------------------------------------------------------- messages

MESSAGES = vectors("messages.json")
BYTES = {
    *("phase", "sum_id", "data", "public_keys", "masks", "known"),
    *("ciphertexts", "commitment", "vector", "shares", "traces", "public_key", "hierarchy", "rows"),
    *("report_id", "sealed", "share", "leader", "helper", "key", "task", "signature", "offer"),
    *("reports", "refused", "total", "entries", "public", "commitment", "verify_key", "verifiers"),
}


def from_json(value: Any, name: str = "") -> Any:
    """In JSON bytes are base64 text, told from text by the field's name."""
    if isinstance(value, dict):
        return {key: from_json(entry, key) for key, entry in value.items()}
    if isinstance(value, list):
        return [from_json(entry, name) for entry in value]
    # Some names are of numbers, too: rows of a matrix, and what prototypes refuse.
    return base64.b64decode(value) if name in BYTES and isinstance(value, str) else value


HELPERS = ("helper_tasks", "helper_answers", "list_parts")


@pytest.mark.parametrize("kind", ["tasks", "answers", "bodies", *HELPERS])
def test_messages_from_their_fields_alone(kind: str) -> None:
    for case in MESSAGES[kind]:
        fields = from_json(case["json"])
        assert textbook.unpacked(of(case["messagepack"])) == fields
        if kind != "tasks":  # which need not be as short as they could be
            assert textbook.packed(fields).hex() == case["messagepack"]


@pytest.mark.parametrize(
    ("kind", "decode", "union"),
    [
        ("tasks", decode_task, AnyTask),
        ("answers", decode_answer, AnyAnswer),
    ],
)
def test_messages_by_our_code(kind: str, decode: Any, union: Any) -> None:
    seen = set()
    for case in MESSAGES[kind]:
        message = decode(of(case["messagepack"]))
        assert encode(message).hex() == case["messagepack"]
        assert msgspec.convert(case["json"], union, strict=False) == message
        assert api.decode_body(json.dumps(case["json"]).encode(), api.JSON, union) == message
        seen.add(type(message))
    assert seen == set(union.__args__)
    for case in MESSAGES[f"malformed_{kind}"]:
        with pytest.raises(MalformedMessageError):
            decode(of(case["messagepack"]))


@pytest.mark.parametrize(
    ("kind", "decode", "types"),
    [
        ("helper_tasks", decode_helper_task, {MakeOffer, AddUp}),
        ("helper_answers", decode_helper_answer, {OfferMade, HelperTotal}),
        ("list_parts", msgspec.msgpack.Decoder(ListPart).decode, {ListPart}),
    ],
)
def test_messages_between_leader_and_helper_by_our_code(
    kind: str, decode: Any, types: set[type]
) -> None:
    seen = set()
    for case in MESSAGES[kind]:
        message = decode(of(case["messagepack"]))
        assert encode(message).hex() == case["messagepack"]
        assert msgspec.convert(case["json"], type(message), strict=False) == message
        seen.add(type(message))
    assert seen == types


def test_bodies_by_our_code() -> None:
    for case in MESSAGES["bodies"]:
        kind = BODIES[case["name"]]
        body = api.decode_body(of(case["messagepack"]), api.MESSAGEPACK, kind)
        assert api.decode_body(json.dumps(case["json"]).encode(), api.JSON, kind) == body
        assert api.encode_body(body, api.MESSAGEPACK).hex() == case["messagepack"]


# ---------------------------------------------------------------------- parts of the secure sum

SALTS = vectors("salt.json")


@pytest.mark.parametrize("case", SALTS["cases"], ids=lambda case: case["salt"][:8])
def test_the_salt_of_what_phones_were_told(case: dict[str, Any]) -> None:
    task, given = textbook.unpacked(of(case["task"])), from_json(case["parameters"])
    assert textbook.canonical(task["advertise"] | {"index": 0}).hex() == case["opening"]
    told = textbook.told_in(given, task)
    assert told.hex() == case["told"]
    assert textbook.salt_of(task["advertise"], told).hex() == case["salt"]
    ours = decode_task(of(case["task"]))
    assert isinstance(ours, SumPartTask)
    parameters = msgspec.convert(case["parameters"], AnyParameters)
    for phone in (0, 7, 2**32 - 1):
        theirs = ours.for_phone(phone)
        assert isinstance(theirs.opening, AdvertiseKeys)
        salt = masks.salt(theirs.opening, theirs.told(parameters))
        assert salt.hex() == case["salt"]


def nested(*maps: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """These maps and those in them."""
    for each in maps:
        yield each
        yield from nested(*(entry for entry in each.values() if isinstance(entry, dict)))


def test_whatever_phones_are_told_differently_gives_another_salt() -> None:
    assert len({case["salt"] for case in SALTS["cases"]}) == len(SALTS["cases"]) >= 5
    for case in SALTS["cases"]:
        task, parameters = textbook.unpacked(of(case["task"])), from_json(case["parameters"])
        for where in nested(parameters, task):
            for name, value in list(where.items()):
                if name == "index" or isinstance(value, dict):
                    continue
                where[name] = b"another" if value != b"another" else b""
                told = textbook.told_in(parameters, task)
                assert textbook.salt_of(task["advertise"], told).hex() != case["salt"], name
                where[name] = value


KEYS, SHAMIR, MASKS = (vectors(name) for name in ("keys.json", "shamir.json", "masks.json"))


@pytest.mark.parametrize("place", [0, 1])
def test_both_phones_agree_on_their_keys(place: int) -> None:
    salt, (us, them) = of(KEYS["salt"]), KEYS["phones"][:: 1 - 2 * place]
    private, public = of(KEYS["private_keys"][place]), of(KEYS["public_keys"][1 - place])
    assert textbook.public_of(private).hex() == KEYS["public_keys"][place]
    expected = of(KEYS["seal"]), of(KEYS["mask"])
    info = b"earshot secure sum: keys of a pair\0\0\0\x03\0\0\x01\x04"
    assert textbook.hkdf(of(KEYS["shared"]), salt, info) == b"".join(expected)
    assert textbook.agreed(private, public, salt, us, them) == expected
    key = X25519PrivateKey.from_private_bytes(private)
    assert masks.agree(key, public, salt, us, them) == expected


def test_a_list_of_masks() -> None:
    case, salt = KEYS["list"], of(KEYS["salt"])
    lock, sealed, seeds = of(case["lock"]), of(case["sealed"]), list(map(of, case["masks"]))
    assert textbook.listed(lock, sealed, salt, case["phone"]) == seeds
    assert masks.open_list(lock, sealed, salt, case["phone"]) == tuple(seeds)
    assert masks.seal_list(lock, seeds, salt, case["phone"]) == sealed


def test_commitment_and_sealed_shares() -> None:
    sum_id, salt = of(KEYS["sum_id"]), of(KEYS["salt"])
    case, sealed = KEYS["commitment"], KEYS["sealed"]
    assert textbook.committed(of(case["seed"]), salt, case["phone"]).hex() == case["digest"]
    assert masks.commitment(of(case["seed"]), salt, case["phone"]).hex() == case["digest"]
    bound = textbook.route(sum_id, sealed["sender"], sealed["recipient"])
    assert bound.hex() == sealed["associated_data"]
    aead = AESGCM(of(KEYS["seal"]))
    ciphertext = of(sealed["ciphertext"])
    assert aead.decrypt(ciphertext[:12], ciphertext[12:], bound).hex() == sealed["plaintext"]
    assert len(ciphertext) == SEALED_SHARES_BYTES
    key = X25519PrivateKey.from_private_bytes(of(KEYS["private_keys"][0]))
    for refused in KEYS["refused_public_keys"]:
        with pytest.raises(ValueError, match="shared key"):
            masks.agree(key, of(refused), salt, 0, 1)


def test_secret_sharing() -> None:
    assert int(SHAMIR["prime"], 16) == textbook.PRIME == shamir.PRIME
    for case in SHAMIR["cases"]:
        coefficients = [int(number, 16) for number in case["coefficients"]]
        assert len(coefficients) == case["threshold"] - 1
        shares = [of(share) for share in case["shares"]]
        assert textbook.shares_of(of(case["secret"]), coefficients, len(shares)) == shares
        newest = dict(list(enumerate(shares, 1))[-case["threshold"] :])
        assert textbook.recovered(newest).hex() == case["secret"]
        numbers = {point: int.from_bytes(share) for point, share in newest.items()}
        assert shamir.recover(numbers, len(shares)).to_bytes(32).hex() == case["secret"]


def test_two_wrong_shares_of_nine_are_corrected() -> None:
    case, genuine = SHAMIR["two_wrong_of_nine"], SHAMIR["cases"][-1]
    received = [of(share) for share in case["shares"]]
    right = {
        point: share
        for point, share in enumerate(received, 1)
        if share.hex() == genuine["shares"][point - 1]
    }
    assert len(right) == 7
    assert textbook.recovered(right).hex() == case["recovered"] == genuine["secret"]
    numbers = {point: int.from_bytes(share) for point, share in enumerate(received, 1)}
    digest = hashlib.sha256(of(genuine["secret"])).digest()
    found = decoding.recover_checked(
        numbers, 5, 9, lambda secret: hashlib.sha256(secret).digest() == digest
    )
    assert found.secret.hex() == case["recovered"]
    assert found.wrong == {2, 7}


def test_key_streams_and_packing() -> None:
    seed = of(MASKS["seed"])
    assert textbook.key_stream(seed, 48).hex() == MASKS["key_stream"]
    for bits, words in MASKS["words"].items():
        assert textbook.mask_of(seed, 6, int(bits)) == words
        assert masks.expand_sum([seed], 6, masks.word_type(int(bits))).tolist() == words
    for case in MASKS["packed"]:
        bits, values = case["modulus_bits"], case["values"]
        assert bits == (case["phones"] * case["bound"]).bit_length() + 1
        assert textbook.vector_packed(values, bits).hex() == case["packed"]
        entries = textbook.vector_unpacked(of(case["packed"]), len(values), bits)
        assert [textbook.signed(entry, bits) for entry in entries] == values
        parameters = SumParameters(
            case["phones"], len(values), case["bound"], 0.0, 0.0, 2, 1, (len(values),)
        )
        words = encoding.unpack(of(case["packed"]), parameters)
        assert encoding.decode(words, parameters).tolist() == values


# --------------------------------------------------------------------------- a whole secure sum

SUM = vectors("secure_sum.json")


def test_a_phone_from_the_document_alone_gives_every_answer() -> None:
    phones = [
        textbook.TextbookPhone(drawn["input"], SUM["modulus_bits"], drawn, of(SUM["told"]))
        for drawn in SUM["phones"]
    ]
    vanished = []
    for step in SUM["messages"]:
        if step["answer"] is None:
            vanished.append((step["round"], step["phone"]))
            continue
        answer = phones[step["phone"]].answer(textbook.unpacked(of(step["task"])))
        assert textbook.packed(answer).hex() == step["answer"]
    assert vanished == [(2, 3), (3, 1)]


def test_a_server_from_the_document_alone_gets_the_sum() -> None:
    answers: list[dict[int, Any]] = [{}, {}, {}, {}]
    tasks: list[dict[int, Any]] = [{}, {}, {}, {}]
    for step in SUM["messages"]:
        tasks[step["round"]][step["phone"]] = textbook.unpacked(of(step["task"]))
        if step["answer"] is not None:
            answers[step["round"]][step["phone"]] = textbook.unpacked(of(step["answer"]))
    shares: dict[int, dict[int, bytes]] = {phone: {} for phone in range(6)}
    for phone, answer in answers[3].items():
        task = tasks[3][phone]
        for place, owner in enumerate(task["survivors"] + task["dropped"]):
            share = answer["shares"][33 * place : 33 * place + 33]
            assert tasks[1][owner]["neighbours"][share[0] - 1] == phone
            shares[owner][share[0]] = share[1:]
    length, bits = SUM["parameters"]["length"], SUM["modulus_bits"]
    salt = textbook.salt_of(tasks[0][0], of(SUM["told"]))
    total = [0] * length
    for phone, answer in answers[2].items():
        seed = textbook.recovered(shares[phone])
        assert textbook.committed(seed, salt, phone) == answers[1][phone]["commitment"]
        entries = textbook.vector_unpacked(answer["vector"], length, bits)
        mask = textbook.mask_of(seed, length, bits)
        total = [t + e - m for t, e, m in zip(total, entries, mask, strict=True)]
    for gone in sorted(answers[1].keys() - answers[2].keys()):
        lock, sealed = textbook.recovered(shares[gone]), answers[1][gone]["masks"]
        seeds = textbook.listed(lock, sealed, salt, gone)
        for them, seed in zip(tasks[1][gone]["neighbours"], seeds, strict=True):
            if them not in answers[2]:
                continue
            sign = 1 if gone > them else -1
            mask = textbook.mask_of(seed, length, bits)
            total = [t - sign * m for t, m in zip(total, mask, strict=True)]
    assert [textbook.signed(entry, bits) for entry in total] == SUM["result"]
    inputs = [SUM["phones"][phone]["input"] for phone in SUM["survivors"]]
    assert SUM["result"] == [sum(column) for column in zip(*inputs, strict=True)]


def test_our_server_gets_the_same_sum_from_the_same_answers() -> None:
    first = msgspec.msgpack.decode(of(SUM["messages"][0]["task"]), type=AdvertiseKeys)
    # Six phones are each other's neighbours, so the graph is the same whatever is drawn.
    aggregator = Aggregator(first.sum_id, first.parameters, told=of(SUM["told"]))
    for number in range(4):
        for step in (step for step in SUM["messages"] if step["round"] == number):
            task = aggregator.task_for(step["phone"])
            assert task is not None
            assert encode(task).hex() == step["task"]
            if step["answer"] is not None:
                answer = decode_answer(of(step["answer"]))
                assert isinstance(answer, SumAnswer)
                aggregator.accept(step["phone"], answer)
        aggregator.advance()
    assert aggregator.result().tolist() == SUM["result"]
    assert sorted(aggregator.survivors()) == SUM["survivors"]


# ------------------------------------------------------------------- parameters, noise, ballots

PARAMETERS, BALLOTS = vectors("parameters.json"), vectors("ballots.json")


def tails(population: int, marked: int, degree: int) -> list[Fraction]:
    """Pr[HG ≥ j] for j = 0 … degree + 1, without rounding."""
    ways = [
        math.comb(marked, j) * math.comb(population - marked, degree - j) for j in range(degree + 1)
    ]
    whole = math.comb(population, degree)
    return [Fraction(sum(ways[j:]), whole) for j in range(degree + 2)]


def textbook_choice(phones: int, dropout: Fraction, corrupted: Fraction) -> tuple[int, int]:
    """The smallest k, and its largest t, that the conditions admit."""
    secrecy, recovery = Fraction(1, 2**40), Fraction(1, 2**30)
    degrees = list(range(2, min(254, phones - 2) + 1, 2))
    for degree in [*degrees, phones - 1]:
        connected = phones * (dropout + corrupted) ** (degree // 2) <= secrecy
        if degree < phones - 1 and not connected:
            continue
        leaks = tails(phones - 1, math.ceil(corrupted * phones), degree)
        losses = tails(phones - 1, math.ceil(dropout * phones), degree)
        for threshold in range(degree, degree // 2, -1):
            if (
                phones * leaks[threshold] <= secrecy
                and phones * losses[degree - threshold + 1] <= recovery
            ):
                return degree, threshold
    raise AssertionError("no safe graph")


@pytest.mark.parametrize(
    "case", PARAMETERS["graphs"], ids=lambda case: f"{case['phones']}, {case['dropout']}"
)
def test_neighbours_and_thresholds(case: dict[str, Any]) -> None:
    dropout, corrupted = Fraction(str(case["dropout"])), Fraction(str(case["corrupted"]))
    expected = (case["neighbours"], case["threshold"])
    assert textbook_choice(case["phones"], dropout, corrupted) == expected
    chosen = choose(case["phones"], (1,), 1, case["dropout"], case["corrupted"])
    assert (chosen.neighbours, chosen.threshold) == expected
    assert case["least_survivors"] == case["phones"] - math.floor(dropout * case["phones"])


def rounded(product: float) -> float:
    """A product before ⌈ ⌉ or ⌊ ⌋ is taken of it, as the document says."""
    return round(product) if abs(product - round(product)) < 5e-7 else product


@given(
    st.integers(3, 10**8),
    st.integers(0, 999).map(lambda parts: parts / 1000) | st.floats(0.0, 0.99),
    st.integers(0, 999).map(lambda parts: parts / 1000) | st.floats(0.0, 0.99),
)
@example(100, 0.07, 0.0)
@example(500, 0.1, 0.0)
def test_numbers_of_phones_are_rounded_as_the_document_says(
    phones: int, dropout: float, corrupted: float
) -> None:
    parameters = msgspec.convert(
        PARAMETERS["votes"][-1]["parameters"]
        | {"phones": phones, "dropout": dropout, "corrupted": corrupted},
        AnyParameters,
    )
    assert parameters.least_survivors == phones - math.floor(rounded(dropout * phones))
    honest = rounded((1.0 - dropout - corrupted) * phones)
    assert parameters.honest_survivors == math.ceil(honest)


def test_seven_of_a_hundred() -> None:
    assert 0.07 * 100 != 7
    assert rounded(0.07 * 100) == 7


@pytest.mark.parametrize("case", PARAMETERS["votes"], ids=lambda case: case["vote"])
def test_noise_and_bound_of_a_vote(case: dict[str, Any]) -> None:
    parameters = msgspec.convert(case["parameters"], AnyParameters)
    part = parameters.plan().part(case["vote"])
    assert isinstance(part, SecureSum)
    shape = tuple(case["shape"])
    assert msgspec.to_builtins(parameters.sum_parameters(part, shape)) == case["sum"] | {
        "shape": shape
    }
    with mpmath.workdps(80):
        alpha, order = mpmath.exp(-1 / mpmath.mpf(case["scale"])), mpmath.mpf(1)
        order /= case["honest_survivors"]
        law, total = (1 - alpha) ** order, mpmath.mpf(0)
        thresholds: list[int] = []
        while not thresholds or thresholds[-1] < 2**128 - 1:
            total += law
            thresholds.append(min(int(total * 2**128), 2**128 - 1))
            law *= alpha * (len(thresholds) - 1 + order) / len(thresholds)
    for place, threshold in case["polya_thresholds"].items():
        assert thresholds[int(place)] == int(threshold, 16)
    probability = Fraction(2.0**-80 / (case["sum"]["phones"] * math.prod(shape)))
    least = 2**128 - math.floor(probability * 2**127)
    most = case["parameters"]["centroid_votes"]
    room = next(x for x, threshold in enumerate(thresholds) if threshold >= least)
    assert case["sum"]["bound"] == most + room


def test_what_a_phase_costs() -> None:
    for case in PARAMETERS["releases"]:
        given = case["parameters"]
        costs = {(r["step"], r["unit"]): (r["epsilon"], r["delta"]) for r in case["releases"]}
        budget = given["budget"]
        repeated = given["top_local_centroids"] * budget["selection"]
        assert costs["select", "recording"] == (repeated, 0.0)
        assert costs["select", "phone"] == (repeated * given["recordings"], 0.0)
        local = (budget["clustering"], given.get("delta", 1e-6))
        if given["geometry"] == "euclidean":
            local = (budget["clustering"], 0.0)
        assert costs["cluster", "recording"] == local
        sums = {
            "centroid vote": (budget["centroid_vote"], given["centroid_votes"]),
            "label vote": (budget["label_vote"], given["label_votes"]),
        }
        for step, (epsilon, votes) in sums.items():
            for unit, spent in (("recording", epsilon), ("phone", epsilon * votes / 2)):
                delta = (1 + math.exp(spent)) * (2 * 2.0**-40 + 2.0**-128)
                assert costs[step, unit] == pytest.approx((spent, delta), rel=1e-9)


def winners(counts: list[int], votes: int) -> list[int]:
    """Places of the largest positive counts; of equal ones the first."""
    order = sorted(range(len(counts)), key=lambda place: (-counts[place], place))
    return [place for place in order[:votes] if counts[place] > 0]


def near(point: list[float], centroids: list[list[float]], spherical: bool) -> int:
    """The place of the nearest centroid; of equally near ones the first."""

    def farness(centroid: list[float]) -> float:
        if spherical:
            inner = math.fsum(p * c for p, c in zip(point, centroid, strict=True))
            return -inner / math.hypot(*centroid) / math.hypot(*point)
        return math.fsum((p - c) ** 2 for p, c in zip(point, centroid, strict=True))

    return min(range(len(centroids)), key=lambda place: farness(centroids[place]))


def test_ballots() -> None:
    for case in BALLOTS["counts"]:
        spherical = case["geometry"] == "spherical"
        nearest = [near(point, case["centroids"], spherical) for point in BALLOTS["points"]]
        assert nearest == case["nearest"]
        assert case["counts"] == [nearest.count(i) for i in range(len(case["centroids"]))]
        for votes, ballot in case["ballots"].items():
            chosen = winners(case["counts"], int(votes))
            assert ballot == [int(place in chosen) for place in range(len(ballot))]
    table = BALLOTS["label_counts"]
    nearest = BALLOTS["counts"][0]["nearest"]
    for place, row in enumerate(table):
        for label, count in enumerate(row):
            assert count == list(zip(nearest, BALLOTS["labels"], strict=True)).count((place, label))
    for votes, ballot in BALLOTS["label_ballots"].items():
        expected = [[0] * len(row) for row in table]
        for place in winners([max(row) for row in table], int(votes)):
            expected[place][table[place].index(max(table[place]))] = 1
        assert ballot == expected
    order = sorted(range(5), key=lambda place: (-BALLOTS["centroid_totals"][place], place))
    assert BALLOTS["kept"] == order[:3]
    totals = BALLOTS["label_totals"]
    assert BALLOTS["winning_labels"] == [row.index(max(row)) for row in totals]
