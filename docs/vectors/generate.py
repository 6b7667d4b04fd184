"""Write the test vectors of docs/protocol.md: `python docs/vectors/generate.py [FOLDER]`.

All randomness is scripted, see `scripted.py`.
"""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import examples
import msgspec
import numpy as np
from cells import cell_vectors
from contacts import contact_vectors
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from labelling import labelling_vectors
from links import link_vectors
from refused import refused_vectors
from schema import schema
from scripted import drawn, scripted
from two_operators import two_operator_vectors

from earshot_client.encoder import open_encoder, rate_of
from earshot_client.labels import label_counts
from earshot_client.lite_rt_encoder import spectrum
from earshot_protocol import api, geometry, signatures
from earshot_protocol.phases.discovery import DiscoveryParameters, SumCells, SumLabels
from earshot_protocol.phases.labelling import CheckLabels, LabelSamples
from earshot_protocol.phases.learning import (
    CENTROID_VOTE,
    LABEL_VOTE,
    GlobalCentroids,
    TopCentroids,
)
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.plan import SecureSum, SumPartTask
from earshot_protocol.phases.statistics import CountContacts
from earshot_protocol.privacy import noise
from earshot_protocol.secure_sum import decoding, encoding, masks, participant, shamir
from earshot_protocol.secure_sum.aggregator import Aggregator
from earshot_protocol.secure_sum.messages import AdvertiseKeys
from earshot_protocol.secure_sum.parameters import SumParameters, choose
from earshot_protocol.secure_sum.participant import Participant
from earshot_protocol.secure_sum.rounds import Round
from earshot_protocol.shipped_encoders import SHIPPED_ENCODERS
from earshot_protocol.spectrum import Spectrum
from earshot_protocol.voting import ballots
from earshot_protocol.wire import canonical, encode

Vector = dict[str, Any]
VOTES = (GlobalCentroids, TopCentroids)


# -------------------------------------------------------------------- transport and messages


def signature_vectors() -> Vector:
    """Return signed requests, and requests that are refused."""
    secret = drawn("signing key", 32)
    key = Ed25519PrivateKey.from_private_bytes(secret)
    public = key.public_key().public_bytes_raw()
    enrol = api.Enrol(public_key=public, attestation="an invitation code")
    created = 1_800_000_000
    requests = [
        (api.ENROL, api.MESSAGEPACK, "new", api.encode_body(enrol, api.MESSAGEPACK)),
        (api.TASK, api.MESSAGEPACK, "7", api.encode_body(api.AskTask(), api.MESSAGEPACK)),
        (api.TASK, api.JSON, "7", api.encode_body(api.AskTask(), api.JSON)),
        (api.ANSWER, api.MESSAGEPACK, "7", encode(examples.ANSWERS[1])),
    ]
    signed = []
    for path, media, name, body in requests:
        fields = signatures.sign(key, name, created, path, media, body)
        inside = fields["Signature-Input"].removeprefix("earshot=")
        base = signatures._base(path, media, fields["Content-Digest"], inside)
        signed.append(
            {
                "path": path,
                "content_type": media,
                "keyid": name,
                "created": created,
                "body": body.hex(),
                "signature_base": base.decode(),
                "fields": fields,
            }
        )
    path, media, _, body = requests[1]
    fields = signatures.sign(key, "7", created, path, media, body)
    genuine = {"path": path, "now": created, "body": body.hex(), "fields": fields}
    far = signatures.LARGEST_SKEW
    refused: list[Vector] = [
        {"why": "signed 301 seconds ago", "kind": "stale-signature", "now": created + far + 1},
        {"why": "signed 301 seconds ahead", "kind": "stale-signature", "now": created - far - 1},
        {"why": "another path", "kind": "signature", "path": api.ANSWER},
        {"why": "another body", "kind": "signature", "body": (body + b"\0").hex()},
        {
            "why": "another name",
            "kind": "signature",
            "fields": {
                **fields,
                "Signature-Input": fields["Signature-Input"].replace('"7"', '"8"'),
            },
        },
        {
            "why": "a parameter that the profile does not have",
            "kind": "signature",
            "fields": {**fields, "Signature-Input": fields["Signature-Input"] + ';nonce="1"'},
        },
    ]
    return {
        "private_key": secret.hex(),
        "public_key": public.hex(),
        "signed": signed,
        "accepted_until": [{**genuine, "now": created + far}, {**genuine, "now": created - far}],
        "refused": [{**genuine, **case} for case in refused],
    }


def message_vectors() -> Vector:
    """Return every message in both encodings, and bodies that do not decode."""
    return {
        "tasks": [_both(message) for message in examples.TASKS],
        "answers": [_both(message) for message in examples.ANSWERS],
        "bodies": [{"name": type(body).__name__, **_both(body)} for body in examples.BODIES],
        "helper_tasks": [_both(message) for message in examples.HELPER_TASKS],
        "helper_answers": [_both(message) for message in examples.HELPER_ANSWERS],
        "list_parts": [_both(message) for message in examples.LIST_PARTS],
        "malformed_tasks": [
            {"why": why, "messagepack": data.hex()} for why, data in examples.MALFORMED_TASKS
        ],
        "malformed_answers": [
            {"why": why, "messagepack": data.hex()} for why, data in examples.MALFORMED_ANSWERS
        ],
    }


def _both(message: object) -> Vector:
    return {
        "json": json.loads(msgspec.json.encode(message)),
        "messagepack": msgspec.msgpack.encode(message).hex(),
    }


# ---------------------------------------------------------------------- parts of the secure sum


def salt_vectors() -> Vector:
    """Return salts of sums: what phones were told, in the canonical form, and its digest."""
    cases: list[Vector] = []
    # Sums by two operators have no salt: their offer has the digest of what phones were told.
    tasks = [
        task
        for task in examples.TASKS
        if isinstance(task, SumPartTask) and isinstance(task.opening, AdvertiseKeys)
    ]
    for task, parameters in (
        *((task, examples.LEARNING) for task in tasks if isinstance(task, VOTES)),
        *((task, examples.SPHERICAL) for task in tasks if isinstance(task, VOTES)),
        *((task, task.parameters) for task in tasks if isinstance(task, CountContacts)),
        *(
            (task, task.parameters or _agreed(task))
            for task in tasks
            if isinstance(task, SumCells | SumLabels)
        ),
        *((task, task.parameters) for task in tasks if isinstance(task, LabelSamples)),
        *((task, examples.LABELLING) for task in tasks if isinstance(task, CheckLabels)),
    ):
        opening = msgspec.structs.replace(task.opening, index=0)
        told = task.told(parameters)
        cases.append(
            {
                "parameters": json.loads(msgspec.json.encode(parameters)),
                "task": encode(task).hex(),
                "opening": canonical(opening).hex(),
                "told": told.hex(),
                "salt": masks.salt(task.opening, told).hex(),
            }
        )
    return {"cases": cases}


def _agreed(task: SumCells | SumLabels) -> DiscoveryParameters:
    """Return the parameters of a phase in which a task that is not its first one may stand."""
    split = isinstance(task, SumLabels) and task.kinds
    return examples.SPLIT if split else examples.DISCOVERY


def key_vectors() -> Vector:
    """Return keys that two phones agree on, a commitment, and shares that one seals."""
    sum_id, salt = drawn("sum of the key vectors", 16), drawn("salt of the key vectors", 32)
    ours, theirs = 3, 260
    private = drawn("key of phone 3", 32)
    other = drawn("key of phone 260", 32)
    key = X25519PrivateKey.from_private_bytes(private)
    public = X25519PrivateKey.from_private_bytes(other).public_key()
    seed, nonce = drawn("seed", 32), drawn("nonce", 12)
    plaintext = b"\x05" + drawn("share of a seed", 32) + drawn("share of a lock", 32)
    agreed = masks.agree(key, public.public_bytes_raw(), salt, ours, theirs)
    lock, listed = drawn("lock", 32), [agreed.mask, drawn("another mask", 32)]
    bound_to = sum_id + participant._ROUTE.pack(1, ours, theirs)
    sealed = nonce + AESGCM(agreed.seal).encrypt(nonce, plaintext, bound_to)
    return {
        "sum_id": sum_id.hex(),
        "salt": salt.hex(),
        "phones": [ours, theirs],
        "private_keys": [private.hex(), other.hex()],
        "public_keys": [
            key.public_key().public_bytes_raw().hex(),
            public.public_bytes_raw().hex(),
        ],
        "shared": key.exchange(public).hex(),
        "seal": agreed.seal.hex(),
        "mask": agreed.mask.hex(),
        "list": {
            "phone": ours,
            "lock": lock.hex(),
            "masks": [mask.hex() for mask in listed],
            "sealed": masks.seal_list(lock, listed, salt, ours).hex(),
        },
        "commitment": {
            "seed": seed.hex(),
            "phone": ours,
            "digest": masks.commitment(seed, salt, ours).hex(),
        },
        "sealed": {
            "sender": ours,
            "recipient": theirs,
            "nonce": nonce.hex(),
            "plaintext": plaintext.hex(),
            "associated_data": bound_to.hex(),
            "ciphertext": sealed.hex(),
        },
        "refused_public_keys": [bytes(32).hex(), (1).to_bytes(32, "little").hex()],
    }


def shamir_vectors() -> Vector:
    """Return secrets, coefficients and shares, and recovery with wrong shares among them."""
    cases: list[Vector] = []
    for threshold, count in ((1, 2), (2, 4), (5, 9)):
        secret = drawn(f"secret {threshold}", 32)
        coefficients = _coefficients(f"polynomial {threshold}", threshold)
        with scripted([_as_drawn([coefficients])]):
            shares = shamir.split([secret], threshold, count)[0]
        cases.append(
            {
                "threshold": threshold,
                "secret": secret.hex(),
                "coefficients": [number.to_bytes(32).hex() for number in coefficients],
                "shares": [share.tobytes().hex() for share in shares],
            }
        )
    received = {point: int(share, 16) for point, share in enumerate(cases[-1]["shares"], 1)}
    received[2] ^= 1
    received[7] = 0
    digest = hashlib.sha256(bytes.fromhex(cases[-1]["secret"])).digest()
    found = decoding.recover_checked(
        received, 5, 9, lambda secret: hashlib.sha256(secret).digest() == digest
    )
    return {
        "prime": f"{shamir.PRIME:064x}",
        "cases": cases,
        "two_wrong_of_nine": {
            "shares": [received[point].to_bytes(32).hex() for point in range(1, 10)],
            "recovered": found.secret.hex(),
        },
    }


def _coefficients(label: str, threshold: int) -> list[int]:
    return [int.from_bytes(drawn(f"{label}, power {i}", 32)) for i in range(1, threshold)]


def _as_drawn(polynomials: list[list[int]]) -> bytes:
    """Return the random bytes that our splitter reads as these coefficients of several secrets."""
    return b"".join(
        coefficient.to_bytes(32, "little")
        for power in zip(*polynomials, strict=True)
        for coefficient in power
    )


def mask_vectors() -> Vector:
    """Return key streams as words of each size, and vectors as they are packed."""
    seed = drawn("mask", 32)
    stream = Cipher(algorithms.AES256(seed), modes.CTR(bytes(16))).encryptor().update(bytes(48))
    packed = []
    for phones, bound, values in (
        (5, 100, [0, 1, -1, 100, -100]),
        (1000, 40, [40, -40, 7]),
        (10_000, 2_000_000, [-2_000_000, 123_456, -1, 0]),
    ):
        parameters = _bare(phones, bound, len(values))
        bits = parameters.modulus_bits
        words = encoding.encode(np.array(values), parameters)
        packed.append(
            {
                "phones": phones,
                "bound": bound,
                "modulus_bits": bits,
                "values": values,
                "packed": encoding.pack(words, bits).hex(),
            }
        )
    return {
        "seed": seed.hex(),
        "key_stream": stream.hex(),
        "words": {
            bits: masks.expand_sum([seed], 6, masks.word_type(bits)).tolist()
            for bits in (16, 32, 64)
        },
        "packed": packed,
    }


def _bare(phones: int, bound: int, length: int) -> SumParameters:
    return SumParameters(phones, length, bound, 0.0, 0.0, 2, 1, (length,))


# --------------------------------------------------------------------------- a whole secure sum


@dataclass
class _Randomness:
    """Everything that one phone draws in one sum."""

    private: bytes
    seed: bytes
    lock: bytes
    seed_coefficients: list[int]
    lock_coefficients: list[int]
    nonces: list[bytes]

    @classmethod
    def of(cls, phone: int, threshold: int, neighbours: int) -> _Randomness:
        return cls(
            drawn(f"phone {phone}: key", 32),
            drawn(f"phone {phone}: seed", 32),
            drawn(f"phone {phone}: lock", 32),
            _coefficients(f"phone {phone}: seed", threshold),
            _coefficients(f"phone {phone}: lock", threshold),
            [drawn(f"phone {phone}: nonce {i}", 12) for i in range(neighbours)],
        )

    def script(self, current: Round) -> Any:
        """Return what our participant draws in a round."""
        if current is Round.ADVERTISE_KEYS:
            return scripted([], (self.private,))
        if current is Round.SHARE_KEYS:
            both = _as_drawn([self.seed_coefficients, self.lock_coefficients])
            return scripted([self.seed, self.lock, both, b"".join(self.nonces)])
        return scripted([])

    def shown(self) -> Vector:
        return {
            "private": self.private.hex(),
            "seed": self.seed.hex(),
            "lock": self.lock.hex(),
            "seed_coefficients": [number.to_bytes(32).hex() for number in self.seed_coefficients],
            "lock_coefficients": [number.to_bytes(32).hex() for number in self.lock_coefficients],
            "nonces": [nonce.hex() for nonce in self.nonces],
        }


def sum_vectors() -> Vector:
    """Run a sum of six phones; phone 3 vanishes before it masks its input, 1 before it unmasks."""
    parameters = choose(6, (3,), 100, 1 / 3, 0.0)
    told = drawn("what the sum is about", 40)
    sum_id = drawn("sum", 16)
    aggregator = Aggregator(sum_id, parameters, lambda size: drawn("graph", size), told)
    inputs = [[1, 2, 3], [-100, 0, 100], [17, -17, 5], [50, 50, 50], [-9, 100, -1], [0, 0, 0]]
    randomness = [_Randomness.of(i, parameters.threshold, parameters.degree) for i in range(6)]
    phones: dict[int, Participant] = {}
    messages = []
    for number, current in enumerate(tuple(Round)[:4]):
        for phone in range(6):
            task = aggregator.task_for(phone)
            if task is None:
                continue
            gone = {Round.MASKED_INPUT: 3, Round.UNMASK: 1}.get(current) == phone
            answer = None
            if not gone:
                with randomness[phone].script(current):
                    if isinstance(task, AdvertiseKeys):
                        phones[phone] = Participant(task, np.array(inputs[phone]), told)
                    answer = phones[phone].answer(task)
                aggregator.accept(phone, answer)
            messages.append(
                {
                    "round": number,
                    "phone": phone,
                    "task": encode(task).hex(),
                    "answer": None if answer is None else encode(answer).hex(),
                }
            )
        aggregator.advance()
    return {
        "parameters": msgspec.to_builtins(parameters),
        "modulus_bits": parameters.modulus_bits,
        "told": told.hex(),
        "phones": [
            {"input": values, **drew.shown()}
            for values, drew in zip(inputs, randomness, strict=True)
        ],
        "messages": messages,
        "survivors": sorted(aggregator.survivors()),
        "result": aggregator.result().tolist(),
    }


# ------------------------------------------------------------------- parameters, noise, ballots


def parameter_vectors() -> Vector:
    """Return neighbours and thresholds, and what phones derive of a phase's sums."""
    chosen = [
        (phones, fraction, fraction)
        for fraction in (0.05, 0.1, 0.2)
        for phones in (1000, 10_000, 100_000, 1_000_000)
    ]
    small = [(8, 0.25, 0.0), (12, 0.25, 0.05), (50, 0.1, 0.05), (100, 0.1, 0.05), (500, 0.3, 0.05)]
    graphs = []
    for phones, dropout, corrupted in chosen + small:
        parameters = choose(phones, (1,), 1, dropout, corrupted)
        graphs.append(
            {
                "phones": phones,
                "dropout": dropout,
                "corrupted": corrupted,
                "neighbours": parameters.neighbours,
                "threshold": parameters.threshold,
                "least_survivors": parameters.least_survivors,
            }
        )
    return {
        "graphs": graphs,
        "votes": [
            _vote(examples.LEARNING, CENTROID_VOTE, (20,)),
            _vote(examples.LEARNING, LABEL_VOTE, (10, len(examples.LABELS))),
        ],
        "releases": [
            {
                "parameters": json.loads(msgspec.json.encode(parameters)),
                "releases": msgspec.to_builtins(parameters.plan().releases()),
            }
            for parameters in (examples.LEARNING, examples.SPHERICAL)
        ],
    }


def _vote(parameters: Parameters, vote: str, shape: tuple[int, ...]) -> Vector:
    part = parameters.plan().part(vote)
    if not isinstance(part, SecureSum):
        raise TypeError(vote)
    mechanism = part.mechanism
    table = noise._polya_table(mechanism.scale, mechanism.honest_survivors)
    size = len(table.high)
    return {
        "parameters": json.loads(msgspec.json.encode(parameters)),
        "vote": vote,
        "shape": shape,
        "scale": mechanism.scale,
        "honest_survivors": mechanism.honest_survivors,
        "polya_thresholds": {i: f"{table.value(i):032x}" for i in (0, 1, 2, size // 2, size - 1)},
        "sum": msgspec.to_builtins(parameters.sum_parameters(part, shape)),
    }


def ballot_vectors() -> Vector:
    """Return nearest centroids, ballots, and how the server reads their sum, with ties."""
    centroids = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]
    points = [[0.5, 0.0], [0.9, 0.1], [0.0, 0.6], [-0.4, 0.0], [1.0, 1.0], [0.2, 0.7], [0.0, 2.0]]
    sphere = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.7, 0.7]]
    labels = [0, -1, 1, 0, 1, 2, 2]
    table = label_counts(
        np.array(points), np.array(labels), np.array(centroids), 3, geometry.Geometry.EUCLIDEAN
    )
    counted = {
        kind: geometry.counts(np.array(points), np.array(places), geometry.Geometry(kind))
        for kind, places in (("euclidean", centroids), ("spherical", sphere))
    }
    return {
        "points": points,
        "labels": labels,
        "counts": [
            {
                "geometry": kind,
                "centroids": places,
                "nearest": geometry.nearest(points, places, geometry.Geometry(kind)).tolist(),
                "counts": counted[kind].tolist(),
                "ballots": {v: ballots.top_votes(counted[kind], v).tolist() for v in range(1, 5)},
            }
            for kind, places in (("euclidean", centroids), ("spherical", sphere))
        ],
        "label_counts": table.tolist(),
        "label_ballots": {v: ballots.label_votes(table, v).tolist() for v in range(1, 5)},
        "centroid_totals": [3, -2, 9, 3, 0],
        "kept": ballots.top_candidates(np.array([3, -2, 9, 3, 0]), 3).tolist(),
        "label_totals": [[1, 4, 4], [-1, -5, -1], [0, 0, 2]],
        "winning_labels": ballots.winning_labels(
            np.array([[1, 4, 4], [-1, -5, -1], [0, 0, 2]])
        ).tolist(),
    }


def encoder_vectors() -> list[Vector]:
    """Return, for each shipped encoder, the embedding of a second of generated sound."""
    return [encoder_vector(name) for name in SHIPPED_ENCODERS]


def encoder_vector(name: str) -> Vector:
    """Return an embedding and the network's input: a chirp to 3/8 of the rate in a tone."""
    encoder = open_encoder(name)
    rate = rate_of(encoder)
    chirp = 3 * rate // 16
    time = np.arange(rate) / rate
    samples = 0.2 * np.sin(2 * np.pi * 440 * time) + 0.1 * np.sin(2 * np.pi * chirp * time**2)
    sound = samples[None].astype(np.float32)
    embedding = encoder.embed(sound)
    mel = spectrum(sound, Spectrum(rate))[0].astype(float)
    return {
        "encoder": encoder.name,
        "rate": rate,
        "samples": f"0.2 sin(2π 440 t) + 0.1 sin(2π {chirp} t²), t = 0/{rate} … {rate - 1}/{rate}",
        "first_frame": np.round(mel[0], 5).tolist(),
        "last_frame": np.round(mel[-1], 5).tolist(),
        "embedding": np.round(embedding[0].astype(float), 6).tolist(),
        "projected_to_8": np.round(encoder.project(embedding, 8)[0].astype(float), 6).tolist(),
    }


VECTORS = {
    "schema.json": schema,
    "signatures.json": signature_vectors,
    "messages.json": message_vectors,
    "salt.json": salt_vectors,
    "keys.json": key_vectors,
    "shamir.json": shamir_vectors,
    "masks.json": mask_vectors,
    "secure_sum.json": sum_vectors,
    "parameters.json": parameter_vectors,
    "ballots.json": ballot_vectors,
    "cells.json": cell_vectors,
    "contacts.json": contact_vectors,
    "labelling.json": labelling_vectors,
    "two_operators.json": two_operator_vectors,
    "refused.json": refused_vectors,
    "links.json": link_vectors,
    "encoder.json": encoder_vectors,
}


def main(folder: Path) -> None:
    """Write all files into a folder."""
    for name, made in VECTORS.items():
        text = json.dumps(made(), indent=1, ensure_ascii=False) + "\n"
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
