"""Requests that somebody hostile would send: made from valid ones, and by hand."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from flask import Flask
from werkzeug.test import run_wsgi_app

from earshot_protocol.api import (
    ANSWER,
    ENROL,
    INVITATIONS,
    JSON,
    MESSAGEPACK,
    PHASES,
    TASK,
    AskTask,
    Enrol,
    Invite,
    StartPhase,
    encode_body,
)
from earshot_protocol.phases.learning import LocalCentroids
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.secure_sum.messages import AdvertisedKeys, MaskedInput, SharedKeys, Unmasked
from earshot_protocol.wire import Answer, Matrix
from earshot_server.attestation import InvitationCodes
from support.api_caller import Caller, Server


@dataclass(frozen=True)
class Request:
    """A request as the WSGI server hands it on: nothing about it needs to be valid."""

    path: str
    body: bytes = b""
    fields: tuple[tuple[str, str], ...] = ()
    method: str = "POST"

    def with_fields(self, **fields: str) -> Request:
        named = {name.replace("_", "-"): value for name, value in fields.items()}
        return replace(self, fields=tuple((dict(self.fields) | named).items()))


@dataclass(frozen=True)
class Response:
    status: int
    fields: dict[str, str]
    body: bytes


def send(app: Flask, request: Request) -> Response:
    """Put a request to the application as a WSGI server would."""
    environ: dict[str, object] = {
        "REQUEST_METHOD": request.method,
        "PATH_INFO": request.path.encode("utf-8", "surrogatepass").decode("latin-1"),
        "QUERY_STRING": "",
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "CONTENT_LENGTH": str(len(request.body)),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(request.body),
        "wsgi.errors": io.StringIO(),
        "wsgi.version": (1, 0),
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    for name, value in request.fields:
        key = name.upper().replace("-", "_")
        environ[key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"] = value
    content, status, headers = run_wsgi_app(app, environ, buffered=True)  # type: ignore[arg-type]
    return Response(int(status.split()[0]), dict(headers), b"".join(content))


@dataclass
class World:
    """What the hostile know: phones of a running phase, and what these said already.

    Attributes:
        server: which they attack.
        phones: members of a phase in its first step; the even ones have answered.
        answers: of every phone, in order; those of the odd ones were never sent.
        parameters: of a phase that could run.
    """

    server: Server
    phones: list[Caller]
    answers: list[LocalCentroids]
    parameters: Parameters
    random: Random

    def signed(self, phone: Caller, path: str, body: object, media: str = MESSAGEPACK) -> Request:
        data = body if isinstance(body, bytes) else encode_body(body, media)
        return Request(path, data, tuple(phone.fields(path, data, media).items()))

    def ordered(self, path: str, body: object, media: str = JSON) -> Request:
        data = body if isinstance(body, bytes) else encode_body(body, media)
        return Request(path, data, (*self.server.bearer.items(), ("Content-Type", media)))

    # --------------------------------------------------------------- what is taken, sent again

    def any_phone(self) -> Caller:
        return self.random.choice(self.phones)

    def valid(self) -> Request:
        """A request that a phone has made before, or might have: it changes nothing."""
        number = self.random.randrange(0, len(self.phones), 2)
        phone, media = self.phones[number], self.random.choice([JSON, MESSAGEPACK])
        if self.random.random() < 0.5:
            return self.signed(phone, ANSWER, self.answers[number], media)
        return self.signed(phone, TASK, AskTask(), media)

    # ----------------------------------------------------------------------------- the attacks

    def flipped(self) -> Request:
        """One bit of an unsent answer, of its signature or of its digest is another."""
        number = self.random.randrange(1, len(self.phones), 2)
        request = self.signed(self.phones[number], ANSWER, self.answers[number])
        where = self.random.choice(["body", "Signature", "Content-Digest", "Signature-Input"])
        if where == "body":
            return replace(request, body=self._flip(request.body))
        fields = dict(request.fields)
        if where == "Signature":
            signature = base64.b64decode(fields[where].split(":")[1])
            fields[where] = f"earshot=:{base64.b64encode(self._flip(signature)).decode()}:"
        else:
            fields[where] = self._flip(fields[where].encode()).decode("latin-1")
        return replace(request, fields=tuple(fields.items()))

    def _flip(self, data: bytes) -> bytes:
        changed = bytearray(data)
        bit = self.random.randrange(8 * len(changed))
        changed[bit // 8] ^= 1 << bit % 8
        return bytes(changed)

    def swapped(self) -> Request:
        """The signature of one phone on the answer of another."""
        one, other = self.random.sample(range(len(self.phones)), 2)
        thief, victim = self.phones[one], self.phones[other]
        choice = self.random.randrange(3)
        if choice == 0:  # the victim's answer as one's own
            return self.signed(thief, ANSWER, self.answers[other])
        if choice == 1:  # one's own key under the victim's name
            forged = Caller(thief.app, victim.name, thief.key)
            return self.signed(forged, ANSWER, self.answers[other])
        request = self.signed(victim, TASK, AskTask())
        given = dict(self.signed(thief, TASK, AskTask()).fields)
        return request.with_fields(Signature=given["Signature"])

    def moved(self) -> Request:
        """A valid signature on another path, body or media type."""
        request = self.valid()
        choice = self.random.randrange(3)
        if choice == 0:
            return replace(request, path=ANSWER if request.path == TASK else TASK)
        if choice == 1:
            return replace(request, body=request.body + b"\x00")
        media = dict(request.fields)["Content-Type"]
        return request.with_fields(Content_Type=JSON if media == MESSAGEPACK else MESSAGEPACK)

    def stale(self) -> Request:
        phone, skew = (
            self.any_phone(),
            self.random.choice([-1, 1]) * 10.0 ** self.random.uniform(3, 9),
        )
        data = encode_body(AskTask(), MESSAGEPACK)
        return Request(TASK, data, tuple(phone.fields(TASK, data, MESSAGEPACK, skew).items()))

    def stranger(self) -> Request:
        """A key that nobody enrolled, under any name."""
        names = ("new", "0", "1", "-1", "9" * 18, "9" * 30, "00001", "admin", "_", "A" * 64)
        caller = Caller(self.server.app, self.random.choice(names), Ed25519PrivateKey.generate())
        return self.signed(caller, self.random.choice([TASK, ANSWER]), AskTask())

    def forged_answer(self) -> Request:
        """A well-formed answer that no task asked for, signed by a phone of the phase."""
        number = self.random.randrange(len(self.phones))
        return self.signed(
            self.phones[number],
            ANSWER,
            self._answer(number),
            self.random.choice([JSON, MESSAGEPACK]),
        )

    def _answer(self, number: int) -> Answer:
        random, own = self.random, self.answers[number]
        sender = random.choice([number, (number + 1) % len(self.phones), 2**32 - 1])
        sum_id = random.choice([own.phase, random.randbytes(16)])
        some = random.randrange(4)
        return random.choice(
            (
                LocalCentroids(phase=random.randbytes(16), sender=number, centroids=own.centroids),
                LocalCentroids(
                    phase=own.phase, sender=number, centroids=Matrix(some, 3, random.randbytes(12))
                ),
                LocalCentroids(
                    phase=own.phase, sender=number, centroids=Matrix(2, 2, b"\xff\xff\xff\x7f" * 4)
                ),
                AdvertisedKeys(sum_id=sum_id, sender=sender, public_key=bytes(32)),
                SharedKeys(
                    sum_id=sum_id, sender=sender, ciphertexts=(bytes(93),) * some,
                    masks=bytes(32 * some + 16), commitment=bytes(32),
                ),
                MaskedInput(sum_id=sum_id, sender=sender, vector=random.randbytes(some * 1000)),
                Unmasked(
                    sum_id=sum_id, sender=sender, shares=random.randbytes(33 * some),
                    traces=random.randbytes(8 * random.randrange(some + 1)),
                ),
            )
        )  # fmt: skip

    def bomb(self) -> Request:
        """A few bytes that claim to be a great deal, or are nested without end."""
        depth = self.random.choice([10, 1000, 30_000])
        bodies = (
            b"\xdd\xff\xff\xff\xff",  # an array of 2^32 - 1
            b"\x81\xa5known\xdd\xff\xff\xff\xff" + b"\xc4\x10" + bytes(16),
            b"\x81\xa5known\xdc\xff\xff" + b"\xc4\x00" * 20_000,
            b"\xdf\xff\xff\xff\xff\xa1a",  # a map
            b"\xdb\xff\xff\xff\xffa",  # a string
            b"\xc6\xff\xff\xff\xffa",  # bytes
            b"\xc9\xff\xff\xff\xff\x01a",  # an extension
            b"\xc7\x0c\xff" + b"\xff" * 12,  # a time in the far future
            b"\x91" * depth,
            b"\x81\xa1a" * depth,
            b"[" * depth,
            b'{"a":' * depth,
            b'{"known":' + b"[" * depth,
            b'{"known":[' + b'"",' * 20_000,
            b'{"a":"' + b"\\u0000" * 10_000 + b'"}',
            b"1" * 60_000,
            b"-1e" + b"9" * 60_000,
            b'{"known":["' + b"A" * 60_000,
            b"\xc1",
            b"",
        )
        path = self.random.choice([TASK, ANSWER])
        body, media = self.random.choice(bodies), self.random.choice([JSON, MESSAGEPACK])
        return self.signed(self.any_phone(), path, body, media)

    def operator_bomb(self) -> Request:
        """The same to an operator's endpoint, with the token: a mistake must not hurt either."""
        body = self.bomb().body
        media = self.random.choice([JSON, MESSAGEPACK])
        return self.ordered(self.random.choice([INVITATIONS, PHASES]), body, media)

    def misstart(self) -> Request:
        """A phase that cannot run, ordered by the operator."""
        wrong = self.random.choice(
            (
                {"phones": self.random.choice([-1, 0, 2, 10**9, 2**63, 10**400])},
                {"dropout": self.random.choice([-0.1, 1.0, 1e308, 0.999999999])},
                {"corrupted": self.random.choice([1.0, 0.99])},
                {"step_seconds": self.random.choice([0, -1, 1e-400])},
                {"labels": self.random.choice([[], ["a", "a"], [""], ["a" * 65], ["\ud800"], 1])},
                {"delta": self.random.choice([0, 1, -1])},
                {"local_centroids": self.random.choice([0, 257, 2**64])},
                {"budget": dict.fromkeys(("clustering", "selection"), 1.0)},
                {"type": self.random.choice(["statistics", "", "Learning", None])},
                {"extra": 1},
            )
        )
        parameters = msgspec.to_builtins(self.parameters, str_keys=True) | wrong
        body = json_of({"parameters": parameters})
        return self.ordered(PHASES, body)

    def media(self) -> Request:
        """Another content type, encoding or accepted format."""
        request = self.valid()
        if self.random.random() < 0.5:
            return request.with_fields(
                Content_Type=self.random.choice(
                    ("", "text/html", "multipart/form-data; boundary=x", "application/x-msgpack",
                     "application/json, application/msgpack", "a" * 5000, "\xff/\xfe")
                )
            )  # fmt: skip
        extra = (
            {"Content_Encoding": "gzip"},
            {"Accept": "image/png"},
            {"Accept": ",".join(["a/b;q=0.5"] * 1000)},
            {"Accept": "\xff;q=\xff"},
        )
        return request.with_fields(**self.random.choice(extra))

    def smuggled(self) -> Request:
        """Fields twice, in conflict, or such as proxies and frameworks obey."""
        request = self.valid()
        signature = dict(request.fields)["Signature"]
        extra = self.random.choice(
            (
                {"Signature": f"{signature}, {signature}"},
                {"Signature": f"other=:AAAA:, {signature}"},
                {"Signature-Input": dict(request.fields)["Signature-Input"] + ";tag=x"},
                {"Signature-Input": 'earshot=();created=1;keyid="1";alg="ed25519"'},
                {"Signature-Input": dict(request.fields)["Signature-Input"] * 50},
                {"X-HTTP-Method-Override": "DELETE"},
                {"Content-Length": self.random.choice(["-1", "x", "1", "9" * 30, "1e3", " 2", ""])},
                {"Content-Length": "3, 4"},
                {"Authorization": "Basic " + base64.b64encode(b"\xff:\xff").decode()},
                {"Authorization": "Bearer " + "A" * 8000},
                {"Host": self.random.choice(["", "a b", "[", "evil.example:99999", "\xff"])},
                {"Range": "bytes=0-"},
                {"Expect": "100-continue"},
                {"Cookie": "session=" + "x" * 4000},
                {"If-None-Match": "*"},
                {"Date": "not a date"},
            )
        )
        return request.with_fields(**extra)

    def path(self) -> Request:
        """Paths that are almost there, or nothing like it."""
        stem = self.random.choice(
            ("/v1/phases/{}", "/v1/results/{}", "/v1/phases/{}/stop", "/v1/{}", "/{}", "/static/{}")
        )
        tail = self.random.choice(
            ("٣" * 32, "\u202e", "\ud800", "\x00", "..", "../../etc/passwd", "%2e%2e", "a" * 5000,
             "0" * 32, "F" * 32, "\r\nX-Evil: 1", "{7*7}", "' OR 1=1 --", "\U0001f4a9", "")
        )  # fmt: skip
        method = self.random.choice(["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "X" * 50])
        fields = self.ordered("/", b"").fields if self.random.random() < 0.5 else ()
        return Request(stem.format(tail), b"", fields, method)

    def forged_operator(self) -> Request:
        """An operator's order with almost the token."""
        token = self.server.credentials.operator_token
        wrong = self.random.choice(
            (token[:-1], token + "=", token.lower(), token[::-1], "", "\xff", "null", "A" * 43)
        )
        scheme = self.random.choice(["Bearer", "bearer", "Basic", "Digest", "Token", ""])
        body = self.random.choice((Invite(), StartPhase(parameters=self.parameters)))
        path = INVITATIONS if isinstance(body, Invite) else PHASES
        order = self.ordered(path, body)
        secret = base64.b64encode(f":{wrong}".encode()).decode() if scheme == "Basic" else wrong
        return order.with_fields(Authorization=f"{scheme} {secret}")

    def false_enrolment(self) -> Request:
        """Enrolments that nobody invited, or in the name of a key that is another's."""
        invitations = InvitationCodes(self.server.credentials.invitation_key)
        code = bytearray(base64.urlsafe_b64decode(invitations.issue(Invite(), 4e9).code))
        caller = Caller(self.server.app)
        choice = self.random.randrange(4)
        if choice == 0:
            code[self.random.randrange(len(code))] ^= 1 << self.random.randrange(8)
        elif choice == 1:
            code = bytearray(self.random.randbytes(self.random.randrange(200)))
        elif choice == 2:  # somebody else's key
            body = Enrol(
                public_key=self.any_phone().public_key, attestation=base64.b64encode(code).decode()
            )
            return self.signed(caller, ENROL, body)
        else:
            caller.name = self.any_phone().name
        attestation = base64.urlsafe_b64encode(code).decode()
        return self.signed(
            caller, ENROL, Enrol(public_key=caller.public_key, attestation=attestation)
        )

    def attacks(self) -> tuple[Callable[[], Request], ...]:
        return (
            self.valid, self.flipped, self.swapped, self.moved, self.stale, self.stranger,
            self.forged_answer, self.bomb, self.operator_bomb, self.misstart, self.media,
            self.smuggled, self.path, self.forged_operator, self.false_enrolment,
        )  # fmt: skip


def json_of(value: object) -> bytes:
    """JSON, numbers and strings that valid JSON does not have included."""
    return json.dumps(value).encode()
