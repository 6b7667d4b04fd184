"""The state machine of a learning phase (Algorithm 1), over a store; no I/O of its own, no clock.

    local centroids ─▸ centroid vote (4 rounds) ─▸ label vote (4 rounds) ─▸ published
           └───────────────────┴────────────────────────┴─▸ failed

`task_for` says what a phone is to do, `accept` takes its answer and changes nothing if it raises,
`advance` closes a step once all have answered or its time is over. A coordinator that dies is
rebuilt by `load` from the last snapshot and the answers accepted since.
"""

from __future__ import annotations

import os
from typing import Self

import msgspec
import numpy as np
import numpy.typing as npt

from earshot_protocol import ballots
from earshot_protocol.errors import (
    EarshotError,
    InvalidParametersError,
    MalformedMessageError,
    RepeatedMessageError,
    TooManyDropoutsError,
    UnexpectedMessageError,
    WrongStateError,
)
from earshot_protocol.messages import (
    AdvertiseKeys,
    Answer,
    Cluster,
    Failed,
    GlobalCentroids,
    LocalCentroids,
    Matrix,
    Result,
    Task,
    TopCentroids,
    Wait,
    decode_answer,
    encode,
)
from earshot_protocol.phase import NEXT, PhaseParameters, Step
from earshot_protocol.privacy import accounting
from earshot_protocol.privacy.mechanisms import BallotSum, Unit
from earshot_protocol.privacy.noise import LARGEST_SHARED_SCALE
from earshot_protocol.privacy.randomness import RandomBytes
from earshot_protocol.secure_sum.aggregator import Aggregator
from earshot_protocol.votes import vote_sum
from earshot_server.discovery.interface import Discovery
from earshot_server.store.interface import PhaseStore

_LARGEST_REASON = 1024


class Snapshot(msgspec.Struct):
    """A phase at the start of a step: all that must survive but the answers of that step.

    `local` is the union of what phones published, `clusters` the global centroid of each of its
    rows (-1: none); `top` indexes the global centroids that the first vote kept; `sum` is the state
    of the secure sum under way.
    """

    phase: bytes
    parameters: PhaseParameters
    step: Step
    deadline: float
    local: bytes = b""
    clusters: tuple[int, ...] = ()
    centroids: Matrix | None = None
    centroid_votes: tuple[int, ...] = ()
    top: tuple[int, ...] = ()
    label_votes: tuple[tuple[int, ...], ...] = ()
    labels: tuple[int, ...] = ()
    sum: bytes = b""
    failure: str = ""

    def local_centroids(self) -> npt.NDArray[np.float32] | None:
        """What phones published, float32 of shape (points, dimensions); None before discovery."""
        if not self.local:
            return None
        return np.frombuffer(self.local, dtype="<f4").reshape(-1, self.parameters.dimensions)


class Coordinator:
    """One learning phase.

    Args:
        store: keeps the phase.
        discovery: finds global centroids.
        snapshot: where the phase stands.
        aggregator: the server's side of a secure sum; replaced in simulations only.
        random: draws the secure sums' graphs.
    """

    def __init__(
        self,
        store: PhaseStore,
        discovery: Discovery,
        snapshot: Snapshot,
        *,
        aggregator: type[Aggregator] = Aggregator,
        random: RandomBytes = os.urandom,
    ) -> None:
        self._store = store
        self._discovery = discovery
        self._state = snapshot
        self._aggregator = aggregator
        self._random = random
        self._local: dict[int, Matrix] = {}
        self._sum = aggregator.restore(snapshot.sum) if snapshot.sum else None

    @classmethod
    def start(
        cls,
        store: PhaseStore,
        discovery: Discovery,
        parameters: PhaseParameters,
        now: float,
        *,
        aggregator: type[Aggregator] = Aggregator,
        random: RandomBytes = os.urandom,
    ) -> Self:
        """Start a phase for phones 0 … n − 1.

        Args:
            store: keeps the phase.
            discovery: finds global centroids.
            parameters: of the phase.
            now: seconds, on the clock that `advance` is told.
            aggregator: the server's side of a secure sum; replaced in simulations only.
            random: draws the secure sums' graphs.

        Raises:
            InvalidParametersError: says which parameter is wrong and what would be accepted.
        """
        check_feasible(parameters)
        snapshot = Snapshot(
            os.urandom(16), parameters, Step.LOCAL_CENTROIDS, now + parameters.step_seconds
        )
        store.create(snapshot.phase, msgspec.msgpack.encode(snapshot))
        return cls(store, discovery, snapshot, aggregator=aggregator, random=random)

    @classmethod
    def load(
        cls,
        store: PhaseStore,
        discovery: Discovery,
        phase: bytes,
        *,
        aggregator: type[Aggregator] = Aggregator,
        random: RandomBytes = os.urandom,
    ) -> Self:
        """The phase as the store has it, accepted answers included.

        Raises:
            InvalidInputError: no such phase.
        """
        snapshot = msgspec.msgpack.decode(store.snapshot(phase), type=Snapshot)
        coordinator = cls(store, discovery, snapshot, aggregator=aggregator, random=random)
        for phone, answer in store.answers(phase):
            coordinator._take(phone, decode_answer(answer))
        return coordinator

    # ------------------------------------------------------------------------------- state

    @property
    def phase(self) -> bytes:
        """Identifier of the phase, 16 bytes."""
        return self._state.phase

    @property
    def step(self) -> Step:
        """Where the phase stands."""
        return self._state.step

    @property
    def state(self) -> Snapshot:
        """Everything that is known so far; for reading."""
        return self._state

    def missing(self) -> set[int]:
        """The phones whose answer to the present step is still awaited."""
        if self.step is Step.LOCAL_CENTROIDS:
            return set(range(self._state.parameters.phones)) - self._local.keys()
        return set() if self._sum is None else self._sum.expected() - self._sum.answered()

    # ------------------------------------------------------------------------------- tasks

    def task_for(self, phone: int) -> Task:
        """What the phone is to do now.

        Raises:
            UnexpectedMessageError: the phone is not enrolled in this phase.
        """
        state = self._state
        self._check_enrolled(phone)
        if state.step is Step.FAILED:
            return Failed(phase=state.phase, reason=state.failure)
        if state.step is Step.PUBLISHED:
            return self.result()
        if state.step is Step.LOCAL_CENTROIDS:
            if phone in self._local:
                return self._wait()
            return Cluster(phase=state.phase, index=phone, parameters=state.parameters)
        task = self._running_sum().task_for(phone)
        if task is None:
            return self._wait()
        if isinstance(task, AdvertiseKeys):
            opening = (
                GlobalCentroids if state.step is Step.CENTROID_VOTE_ADVERTISE else TopCentroids
            )
            return opening(phase=state.phase, centroids=self._candidates(), advertise=task)
        return task

    def result(self) -> Result:
        """What is published at the end.

        Raises:
            WrongStateError: the phase has no result, or not yet.
        """
        state = self._state
        if state.step is not Step.PUBLISHED:
            raise WrongStateError(f"no result: the phase is at '{state.step}'")
        return Result(
            phase=state.phase,
            geometry=state.parameters.geometry,
            centroids=self._candidates(),
            labels=state.labels,
            label_names=state.parameters.labels,
            centroid_votes=tuple(state.centroid_votes[i] for i in state.top),
            label_votes=state.label_votes,
            privacy=accounting.phase_releases(state.parameters),
        )

    def _wait(self) -> Wait:
        return Wait(seconds=self._state.parameters.step_seconds / 10)

    def _candidates(self) -> Matrix:
        """The centroids that are voted on, or published: all of them, then the top ones."""
        centroids = self._state.centroids
        if centroids is None:
            raise WrongStateError("no centroids have been found yet")
        if not self._state.top:
            return centroids
        return Matrix.of(centroids.array()[list(self._state.top)])

    def _running_sum(self) -> Aggregator:
        if self._sum is None:
            raise WrongStateError(f"no secure sum runs in the step '{self.step}'")
        return self._sum

    # ----------------------------------------------------------------------------- answers

    def accept(self, phone: int, answer: Answer) -> None:
        """Take one phone's answer and keep it.

        If the store fails, throw this coordinator away and `load` the phase again.

        Args:
            phone: who sent it, as authenticated by the caller.
            answer: its answer.

        Raises:
            UnexpectedMessageError: late, early, of another phase or sum, in another's name, or
                from a phone that is not enrolled.
            RepeatedMessageError: the phone has answered this step.
            MalformedMessageError: fields that contradict the phase.
        """
        self._take(phone, answer)
        self._store.add_answer(self.phase, phone, encode(answer))

    def _check_enrolled(self, phone: int) -> None:
        if not 0 <= phone < self._state.parameters.phones:
            raise UnexpectedMessageError(f"phone {phone} is not enrolled in this phase")

    def _take(self, phone: int, answer: Answer) -> None:
        self._check_enrolled(phone)
        if isinstance(answer, LocalCentroids):
            self._take_centroids(phone, answer)
        elif self._sum is None:
            raise UnexpectedMessageError(
                f"phone {phone}: {type(answer).__name__} does not belong to the step '{self.step}'"
            )
        else:
            self._sum.accept(phone, answer)

    def _take_centroids(self, phone: int, answer: LocalCentroids) -> None:
        parameters = self._state.parameters
        if self.step is not Step.LOCAL_CENTROIDS:
            raise UnexpectedMessageError(
                f"phone {phone}: the step '{self.step}' takes no centroids"
            )
        if answer.phase != self.phase:
            raise UnexpectedMessageError(f"phone {phone}: an answer to another phase")
        if answer.sender != phone:
            raise UnexpectedMessageError(f"phone {phone}: an answer in the name of {answer.sender}")
        if phone in self._local:
            raise RepeatedMessageError(f"phone {phone} has answered this step")
        shape = (parameters.top_local_centroids, parameters.dimensions)
        if (answer.centroids.rows, answer.centroids.columns) != shape:
            raise MalformedMessageError(
                f"phone {phone}: {answer.centroids.rows} × {answer.centroids.columns} centroids; "
                f"this phase takes {shape[0]} × {shape[1]}"
            )
        answer.centroids.array()
        self._local[phone] = answer.centroids

    # ------------------------------------------------------------------------------- steps

    def advance(self, now: float) -> bool:
        """Close the present step if all have answered or its time is over.

        A step that cannot be closed well (too few phones, nothing found) ends the phase as
        `Step.FAILED`, with the reason in `state.failure`. If the store fails, throw this
        coordinator away and `load` the phase again.

        Args:
            now: seconds, on the clock that the phase was started with.

        Returns:
            Whether the phase moved on.
        """
        state = self._state
        if state.step not in NEXT or (self.missing() and now < state.deadline):
            return False
        try:
            self._close()
            state.step = NEXT[state.step]
        except EarshotError as error:
            state.step, state.failure = Step.FAILED, str(error)[:_LARGEST_REASON]
            self._sum = None
        self._local = {}
        state.deadline = now + state.parameters.step_seconds
        state.sum = self._sum.save() if self._sum else b""
        self._store.replace(self.phase, msgspec.msgpack.encode(state))
        return True

    def _close(self) -> None:
        step = self.step
        if step is Step.LOCAL_CENTROIDS:
            self._discover()
            return
        self._running_sum().advance()
        if step is Step.CENTROID_VOTE_UNMASK:
            self._keep_top_centroids()
        elif step is Step.LABEL_VOTE_UNMASK:
            self._label_centroids()

    def _discover(self) -> None:
        """Step 6, and the opening of the first vote."""
        state, parameters = self._state, self._state.parameters
        least = least_answers(parameters)
        if len(self._local) < least:
            raise TooManyDropoutsError(
                f"{len(self._local)} of {parameters.phones} phones published centroids; "
                f"at least {least} are needed"
            )
        points = np.concatenate([self._local[phone].array() for phone in sorted(self._local)])
        state.local = points.astype("<f4").tobytes()
        found = self._discovery.discover(points, parameters.geometry)
        state.clusters = tuple(found.clusters.tolist())
        state.centroids = Matrix.of(found.centroids)
        self._open_sum(accounting.CENTROID_VOTE, (len(found.centroids),))

    def _keep_top_centroids(self) -> None:
        """Steps 9 and 10, and the opening of the second vote."""
        state, parameters = self._state, self._state.parameters
        totals = self._running_sum().result().astype(np.int64)
        state.centroid_votes = tuple(totals.tolist())
        kept = ballots.top_candidates(totals, min(parameters.top_global_centroids, len(totals)))
        state.top = tuple(kept.tolist())
        self._open_sum(accounting.LABEL_VOTE, (len(kept), len(parameters.labels)))

    def _label_centroids(self) -> None:
        """Steps 13 and 14; a centroid for which noise left no positive count has no label."""
        totals = self._running_sum().result().astype(np.int64)
        winners = np.where(totals.max(axis=1) > 0, ballots.winning_labels(totals), -1)
        self._state.label_votes = tuple(map(tuple, totals.tolist()))
        self._state.labels = tuple(winners.tolist())
        self._sum = None

    def _open_sum(self, vote: str, shape: tuple[int, ...]) -> None:
        parameters = self._state.parameters
        self._sum = self._aggregator(
            os.urandom(16), vote_sum(parameters, _ballots_of(parameters, vote), shape), self._random
        )


def least_answers(parameters: PhaseParameters) -> int:
    """(1 − ρ)n, the phones that a step needs."""
    return vote_sum(
        parameters, _ballots_of(parameters, accounting.CENTROID_VOTE), (1,)
    ).least_survivors


def check_feasible(parameters: PhaseParameters) -> None:
    """Refuse parameters under which no phase can run, before any work.

    Raises:
        InvalidParametersError: says which parameter is wrong and what would be accepted.
    """
    parameters.check()
    if parameters.honest_survivors < 1:
        raise InvalidParametersError(
            f"dropout={parameters.dropout} and corrupted={parameters.corrupted}: together they "
            "must stay below 1"
        )
    for vote in (accounting.CENTROID_VOTE, accounting.LABEL_VOTE):
        _check_scale(vote, _ballots_of(parameters, vote))
    least_answers(parameters)


def _check_scale(vote: str, mechanism: BallotSum) -> None:
    if mechanism.scale > LARGEST_SHARED_SCALE:
        least = mechanism.sensitivity(Unit.RECORDING) / LARGEST_SHARED_SCALE
        raise InvalidParametersError(
            f"budget {vote.replace(' ', '-')}={mechanism.epsilon}: must be at least {least:.3g}"
        )


def _ballots_of(parameters: PhaseParameters, vote: str) -> BallotSum:
    mechanism = accounting.phase_mechanisms(parameters)[vote]
    if not isinstance(mechanism, BallotSum):  # pragma: no cover - both votes are ballot sums
        raise WrongStateError(f"'{vote}' is not a vote")
    return mechanism
