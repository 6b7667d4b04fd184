"""The helper over HTTP: three endpoints for leaders, health, and metrics.

Every request of a leader is signed with its key, and its `keyid` is the public key itself. The
leader is authenticated and authorized before any of the body is read.
"""

from __future__ import annotations

import hmac
import logging
import math
import threading
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec
from flask import Blueprint, Flask, Response, g, request

from earshot_protocol.api import LARGEST_SMALL_BODY, MESSAGEPACK
from earshot_protocol.errors import InvalidInputError, MalformedMessageError
from earshot_protocol.messages import decode_helper_task
from earshot_protocol.signatures import SignatureError, StaleSignatureError
from earshot_protocol.two_operators import refusals
from earshot_protocol.two_operators.messages import AddUp, MakeOffer, read_identity
from earshot_protocol.two_operators.refusals import (
    HelperRefusalError,
    LateListError,
    UnknownLeaderError,
    UnknownSumError,
)
from earshot_protocol.two_operators.transport import (
    LARGEST_PART,
    OFFER_PATH,
    PART_PATH,
    TOTAL_PATH,
    ListPart,
)
from earshot_protocol.wire import Answer, decode, encode
from earshot_server.api import problems
from earshot_server.api.authentication import authenticate, given_token, read_signed
from earshot_server.api.bare import bare_app
from earshot_server.api.health import check_room, health
from earshot_server.api.limits import RateLimits
from earshot_server.api.metrics import PATH as METRICS
from earshot_server.api.metrics import Metrics
from earshot_server.api.problems import BusyError, OperatorError, ProblemKind
from earshot_server.api.shared_counts import SharedCounts
from earshot_server.helper.book import Record
from earshot_server.helper.figures import HelperFigures
from earshot_server.helper.folder import HelperFolder
from earshot_server.helper.helper import Helper, HelperPolicy
from earshot_server.store.database import DatabaseUnavailableError

LARGEST_LIST_BODY = LARGEST_PART + 2**12
"""Largest request with reports, a whole list or a part of one, in bytes."""
LONGEST_WAIT = 86_400
"""Largest `Retry-After` that a leader gets, in seconds."""

_BAD_SIGNATURE = ProblemKind("bad-signature", "The signature is missing or wrong", 401)
_TITLES: dict[type[HelperRefusalError], str] = {
    UnknownLeaderError: "This leader is not served",
    refusals.UnwantedOfferError: "No such sum is offered here",
    refusals.TooManyOffersError: "Enough sums were offered today",
    UnknownSumError: "There is no such sum",
    refusals.EarlyListError: "The list comes too early",
    LateListError: "The list comes too late",
    refusals.AnsweredError: "The sum has its total",
    refusals.SmallListError: "The list is too short",
    refusals.WrongListError: "The list cannot be one",
}
_DETAILS = {
    400: "the request could not be read",
    404: f"the paths that exist are {OFFER_PATH}, {PART_PATH}, {TOTAL_PATH}, /health/live, "
    f"/health/ready and {METRICS}",
    405: "the methods that it takes are in the field `Allow`",
    408: "send it faster, or later",
    413: f"a request with reports may have {LARGEST_LIST_BODY} bytes, and every other "
    f"{LARGEST_SMALL_BODY}",
}
_part_decoder = msgspec.msgpack.Decoder(ListPart)
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class HelperSettings:
    """Settings of the application.

    Attributes:
        address_requests_per_minute: Requests per minute from one address, to each process.
        proxies: Number of reverse proxies before the helper, each adding to X-Forwarded-For.
        counts: Counts of requests that several workers share; None for a single process.
        data_folder: Data folder, whose disk must have free space.
    """

    data_folder: Path
    address_requests_per_minute: int = 6000
    proxies: int = 0
    counts: SharedCounts | None = None


def create_helper_app(settings: HelperSettings) -> Flask:
    """Create the application over the helper of a data folder.

    Raises:
        LocalError: The folder cannot be opened, or its keys are a copy.
    """
    folder = HelperFolder.open(settings.data_folder)
    folder.book.begin(time.time())
    most = settings.address_requests_per_minute
    limits = RateLimits(most, most)
    metrics = Metrics(HelperFigures(folder), settings.counts)
    app = bare_app(limits, metrics, settings.proxies, _DETAILS)
    app.register_error_handler(HelperRefusalError, partial(_refused, folder))
    app.register_error_handler(SignatureError, _badly_signed)
    figures = Blueprint("metrics", __name__)
    figures.before_request(partial(_check_token, folder.token, limits))
    figures.add_url_rule(METRICS, view_func=metrics.respond)
    for blueprint in (
        HelperEndpoints(folder, settings.data_folder).blueprint(),
        health(folder.book, settings.data_folder),
        figures,
    ):
        app.register_blueprint(blueprint)
    return app


class HelperEndpoints:
    """Endpoints for leaders.

    Args:
        folder: Helper.
        place: Data folder, whose disk must have free space.
    """

    def __init__(self, folder: HelperFolder, place: Path) -> None:
        self._folder = folder
        self._place = place
        self._adding = threading.Lock()

    def blueprint(self) -> Blueprint:
        """Return the endpoints."""
        blueprint = Blueprint("leaders", __name__)
        blueprint.post(OFFER_PATH)(self.offer)
        blueprint.post(PART_PATH)(self.part)
        blueprint.post(TOTAL_PATH)(self.total)
        return blueprint

    def offer(self) -> Response:
        """Make an offer of a sum; it is durable before the response is sent."""
        policy = self._leader()
        task = decode_helper_task(read_signed(LARGEST_SMALL_BODY, (MESSAGEPACK,)))
        if not isinstance(task, MakeOffer):
            raise MalformedMessageError("the body must be a request for an offer")
        check_room(self._place)
        return _respond(self._helper(policy).answer(task))

    def part(self) -> Response:
        """Store a part of a list; it is durable before the response is sent."""
        self._leader()
        body = read_signed(LARGEST_LIST_BODY, (MESSAGEPACK,))
        part = decode(_part_decoder, body, LARGEST_LIST_BODY)
        record = self._own(part.sum_id)
        if time.time() > record.answer_until:
            raise LateListError("the time in which this sum is answered is over")
        check_room(self._place)
        self._folder.parts.keep(part, record.terms.parameters)
        return Response(status=204)

    def total(self) -> Response:
        """Return the only total of a sum; its key is erased before the response is sent."""
        policy = self._leader()
        task = decode_helper_task(read_signed(LARGEST_LIST_BODY, (MESSAGEPACK,)))
        if not isinstance(task, AddUp):
            raise MalformedMessageError("the body must be a request for a total")
        self._own(task.sum_id)
        # Concurrent additions are not faster, and two long lists take twice the memory.
        if not self._adding.acquire(blocking=False):
            raise BusyError
        try:
            if not task.reports:
                reports = self._folder.parts.gathered(task.sum_id)
                if not reports:
                    raise MalformedMessageError(
                        "a list without reports: send its parts first, or all of it with this"
                    )
                task = msgspec.structs.replace(task, reports=reports)
            return _respond(self._helper(policy).answer(task))
        finally:
            # Another try sends its list anew; otherwise short requests could each make it be read.
            self._folder.parts.drop(task.sum_id)
            self._adding.release()

    def _leader(self) -> HelperPolicy:
        """Return the policy for the leader that signed the present request."""
        identity = _key_in(authenticate(_key_in)) or b""
        policy = self._folder.leaders.policy(identity)
        if policy is None:
            _log.warning("request of a leader that is not served", extra={"leader": identity.hex()})
            raise UnknownLeaderError(f"leader {identity.hex()} is not served here")
        g.leader = identity.hex()
        return policy

    def _helper(self, policy: HelperPolicy) -> Helper:
        return Helper(self._folder.identity, self._folder.book, policy)

    def _own(self, sum_id: bytes) -> Record:
        """Return the record of a sum of the leader that signed the present request."""
        record = self._folder.book.record(sum_id)
        if record is None or record.leader.hex() != g.leader:
            raise UnknownSumError(f"sum {sum_id.hex()} was never offered to this leader")
        return record


def _key_in(name: str) -> bytes | None:
    """Parse a `keyid` as a public key; None if it is invalid."""
    try:
        return read_identity(name)
    except InvalidInputError:
        return None


def _respond(answer: Answer) -> Response:
    return Response(encode(answer), content_type=MESSAGEPACK)


def _refused(folder: HelperFolder, error: HelperRefusalError) -> Response:
    unknown = isinstance(error, UnknownLeaderError)
    status = 401 if unknown else 503 if error.again else 409
    kind = ProblemKind(error.name.replace("_", "-"), _TITLES[type(error)], status)
    response = problems.respond(kind, str(error))
    if unknown:
        response.headers["WWW-Authenticate"] = _CHALLENGE
    if error.again:
        seconds = min(max(1, math.ceil(error.seconds)), LONGEST_WAIT)
        response.headers["Retry-After"] = str(seconds)
    if "leader" in g:
        try:
            folder.leaders.count_refusal(kind.name)
        except DatabaseUnavailableError as unavailable:
            _log.warning("a refusal was not counted", extra={"reason": str(unavailable)})
    return response


def _badly_signed(error: SignatureError) -> Response:
    now = time.time() if isinstance(error, StaleSignatureError) else None
    response = problems.respond(_BAD_SIGNATURE, str(error), now)
    response.headers["WWW-Authenticate"] = _CHALLENGE
    return response


_CHALLENGE = 'Signature realm="earshot"'


def _check_token(token: str, limits: RateLimits) -> None:
    """Require the folder's token, for metrics."""
    scheme, _, given = given_token()
    if scheme != "bearer" or not given:
        raise OperatorError("Bearer")
    limits.check_failures(request.remote_addr)
    if not hmac.compare_digest(given.encode("utf-8", "replace"), token.encode()):
        limits.count_failure(request.remote_addr)
        raise OperatorError("Bearer")
