"""The whole participant: a task in, an answer out, and everything it remembers in its store.

Each answer, what it changes and its entry in the ledger reach the store in one transaction before
the answer is handed out. A phone that is killed at any point goes on from its store: the same task
again gets the same answer again, and nothing is spent twice.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np
import numpy.typing as npt

from earshot_client import clustering, features, selection
from earshot_client.encoder import Encoder, default_encoder
from earshot_client.labels import (
    UNLABELLED,
    LabelHierarchy,
    UnknownLabelError,
    default_hierarchy,
    label_counts,
)
from earshot_client.lite_rt_encoder import LiteRtEncoder
from earshot_client.policy import Policy
from earshot_client.store.encrypted import EncryptedStore
from earshot_client.store.interface import ENCODER, Store
from earshot_client.transport.interface import Transport
from earshot_protocol.errors import (
    InvalidParametersError,
    RefusedError,
    UnexpectedMessageError,
    WrongStateError,
)
from earshot_protocol.geometry import Geometry, counts, nearest
from earshot_protocol.messages import (
    AdvertiseKeys,
    Answer,
    Cluster,
    CountContacts,
    Failed,
    GlobalCentroids,
    LocalCentroids,
    MaskInput,
    Matrix,
    Result,
    ShareKeys,
    Statistics,
    SumTask,
    Task,
    TopCentroids,
    Unmask,
    Wait,
    decode_answer,
    encode,
)
from earshot_protocol.phase import Parameters, PhaseParameters
from earshot_protocol.privacy import accounting
from earshot_protocol.privacy.ledger import Ledger
from earshot_protocol.privacy.mechanisms import BallotSum
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.secure_sum.participant import Participant
from earshot_protocol.voting import ballots
from earshot_protocol.voting.sums import noisy_ballot, vote_sum

SECONDS_BETWEEN_STEPS = 0.0
"""After an answer: ask again at once, the next step may be open."""
SECONDS_AFTER_PHASE = 86_400.0
"""After a result: ask again the next day."""


class _Membership(msgspec.Struct, frozen=True):
    """The phase that this phone takes part in."""

    phase: bytes
    index: int
    parameters: Parameters
    vote: str = ""
    """The vote whose secure sum is under way."""


class Phone:
    """A phone: hears, keeps embeddings, takes part in learning phases, names scenes.

    Args:
        store: keeps everything; closed with the phone.
        encoder: sound to embeddings.
        policy: what this phone agrees to.
        hierarchy: poll choices and their equivalence classes.
        random: source of the noise; anything but the operating system's is for simulations.
        participant: the phone's side of a secure sum; replaced in simulations only.
    """

    def __init__(
        self,
        store: Store,
        encoder: Encoder,
        policy: Policy | None = None,
        *,
        hierarchy: LabelHierarchy | None = None,
        random: RandomBytes = os.urandom,
        participant: type[Participant] = Participant,
    ) -> None:
        self._store = store
        self._encoder = encoder
        self._policy = policy or Policy()
        self._hierarchy = hierarchy or default_hierarchy()
        self._random = random
        self._participant = participant
        self._adopt_encoder()

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        key: bytes,
        encoder: Encoder | str | Path | None = None,
        policy: Policy | None = None,
    ) -> Self:
        """Open, or create, the phone that lives in an encrypted file.

        Args:
            path: of the file.
            key: 32 secret bytes, from the platform's key store.
            encoder: sound to embeddings, or the path of an encoder file; the shipped one by
                default.
            policy: what this phone agrees to.

        Raises:
            WrongKeyError: the file was made under another key.
            DamagedStoreError: the file is not what a phone wrote.
            DamagedEncoderError: the encoder file is damaged.
            MissingRuntimeError: an encoder file needs LiteRT, which is not installed.
        """
        if encoder is None:
            encoder = default_encoder()
        elif isinstance(encoder, str | Path):
            encoder = LiteRtEncoder.open(encoder)
        return cls(EncryptedStore(path, key), encoder, policy)

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # ----------------------------------------------------------------------- everyday life

    def hear(self, samples: npt.NDArray[np.generic], rate: int) -> int:
        """Keep the embedding of one second of sound; the samples are not kept.

        Args:
            samples: (n,) or (n, channels), floats in [-1, 1] or integers, at least one second.
            rate: samples per second.

        Returns:
            The recording's number.

        Raises:
            UnusableRecordingError: too short, silent, clipped or not finite.
        """
        return self._store.add(self._embed(samples, rate)[0])

    def label(self, recording: int, choice: str) -> None:
        """Attach the answer of a poll to a recording.

        Raises:
            UnknownLabelError: the choice is not in the hierarchy; says which are.
            InvalidInputError: no such recording.
        """
        self._hierarchy.class_of(choice)
        self._store.label(recording, choice)

    def scene(self, samples: npt.NDArray[np.generic], rate: int) -> str | None:
        """Name the scene of one second of sound by the nearest published centroid.

        Returns:
            The equivalence class; None where nobody voted for a label of that centroid.

        Raises:
            UnusableRecordingError: too short, silent, clipped or not finite.
            WrongStateError: no result of a phase has arrived yet.
        """
        result = self.result
        if result is None:
            raise WrongStateError("no published centroids yet: take part in a phase first")
        centroids = result.centroids.array()
        points = self._encoder.project(self._embed(samples, rate), centroids.shape[1])
        label = result.labels[int(nearest(points, centroids, result.geometry)[0])]
        return result.label_names[label] if label >= 0 else None

    @property
    def result(self) -> Result | None:
        """The newest published result, if one has arrived."""
        saved = self._store.get("result")
        return None if saved is None else msgspec.msgpack.decode(saved, type=Result)

    @property
    def ledger(self) -> Ledger:
        """Every release that this phone ever made."""
        return Ledger(self._store.ledger())

    def _embed(self, samples: npt.NDArray[np.generic], rate: int) -> npt.NDArray[np.float32]:
        return self._encoder.embed(features.one_second(samples, rate)[None])

    # ------------------------------------------------------------------------- taking part

    def take_part(self, transport: Transport) -> float:
        """Do whatever the phase needs of this phone now.

        Returns:
            Seconds after which to call again.

        Raises:
            RefusedError: the server asks for what this phone's policy forbids.
            RemoteError: the server's task makes no sense to this phone.
        """
        task = transport.task()
        answer = self.answer(task)
        if answer is not None:
            transport.send(answer)
            return SECONDS_BETWEEN_STEPS
        return task.seconds if isinstance(task, Wait) else SECONDS_AFTER_PHASE

    def answer(self, task: Task) -> Answer | None:
        """Answer a task; None where it asks for nothing.

        A task that was answered before gets the same answer, and costs nothing.

        Raises:
            RefusedError: the task asks for what this phone's policy forbids.
            UnexpectedMessageError: the task does not fit what this phone is doing.
            MalformedMessageError: a matrix whose data do not fill it, or are not finite.
            TooManyDropoutsError: too few neighbours remain.
        """
        if isinstance(task, Wait):
            return None
        digest = hashlib.sha256(encode(task)).digest()
        last = self._store.get("answered")
        if last is not None and last[: len(digest)] == digest:
            return decode_answer(last[len(digest) :])
        with self._store.transaction():
            try:
                answer = _HANDLERS[type(task)](self, task)
            except InvalidParametersError as error:
                raise RefusedError(f"the task's parameters are not valid: {error}") from error
            if answer is not None:
                self._store.put("answered", digest + encode(answer))
        return answer

    def _cluster(self, task: Cluster) -> LocalCentroids:
        parameters = task.parameters
        parameters.check()
        if task.index >= parameters.phones:
            raise RefusedError(f"phone {task.index} in a phase of {parameters.phones} phones")
        if parameters.encoder != self._encoder.name:
            raise RefusedError(
                f"the phase clusters embeddings of '{parameters.encoder}'; "
                f"this phone's are of '{self._encoder.name}'"
            )
        if parameters.dimensions > self._encoder.dimensions:
            raise RefusedError(
                f"dimensions={parameters.dimensions}: an embedding has {self._encoder.dimensions}"
            )
        ledger = self.ledger
        self._policy.check_phase(parameters, accounting.phase_releases(parameters), ledger)
        points, _ = self._points(parameters)
        centroids = _local_clustering(parameters).cluster(points, self._random)
        top = selection.top_centroids(
            counts(points, centroids, parameters.geometry),
            parameters.top_local_centroids,
            parameters.budget.selection,
            random=self._random,
        )
        self._record(ledger, task.phase, parameters, accounting.CLUSTER, accounting.SELECT)
        membership = _Membership(task.phase, task.index, parameters)
        self._store.put("membership", msgspec.msgpack.encode(membership))
        self._store.delete("sum")
        return LocalCentroids(
            phase=task.phase, sender=task.index, centroids=Matrix.of(centroids[top])
        )

    def _vote_for_centroids(self, task: GlobalCentroids) -> Answer:
        membership, parameters = self._learner_in(task.phase)
        centroids = _checked_centroids(task.centroids, parameters)
        points, _ = self._points(parameters)
        votes = min(parameters.centroid_votes, len(centroids))
        ballot = ballots.top_votes(counts(points, centroids, parameters.geometry), votes)
        return self._open_vote(membership, accounting.CENTROID_VOTE, ballot, task.advertise)

    def _vote_for_labels(self, task: TopCentroids) -> Answer:
        membership, parameters = self._learner_in(task.phase)
        centroids = _checked_centroids(task.centroids, parameters)
        points, choices = self._points(parameters)
        labels = np.array(
            [self._label_index(choice, parameters.labels) for choice in choices], dtype=np.int16
        )
        table = label_counts(points, labels, centroids, len(parameters.labels), parameters.geometry)
        ballot = ballots.label_votes(table, min(parameters.label_votes, len(centroids)))
        return self._open_vote(membership, accounting.LABEL_VOTE, ballot, task.advertise)

    def _count_contacts(self, task: CountContacts) -> Answer:
        """Thesis 7.2: the newest contacts, each in the environment that it was labelled with, or
        else in that of the nearest published centroid."""
        parameters = task.parameters
        self._policy.check_phase(parameters, accounting.phase_releases(parameters), self.ledger)
        membership = _Membership(task.phase, task.advertise.index, parameters)
        classes = self._environments()[-parameters.contacts :]
        indices = [parameters.labels.index(name) for name in classes if name in parameters.labels]
        ballot = np.bincount(
            np.array(indices, dtype=np.int64), minlength=len(parameters.labels)
        ).astype(np.int64)
        return self._open_vote(membership, accounting.HISTOGRAM, ballot, task.advertise)

    def _environments(self) -> list[str | None]:
        """The class of each recording, oldest first; None where nobody can tell."""
        embeddings, choices = self._store.recordings()
        result = self.result
        if result is None or not len(embeddings):
            return [self._class_of(choice) for choice in choices]
        centroids = result.centroids.array()
        points = self._encoder.project(embeddings, centroids.shape[1])
        labels = (result.labels[i] for i in nearest(points, centroids, result.geometry))
        heard = [result.label_names[label] if label >= 0 else None for label in labels]
        return [
            self._class_of(choice) if choice is not None else scene
            for choice, scene in zip(choices, heard, strict=True)
        ]

    def _open_vote(
        self,
        membership: _Membership,
        vote: str,
        ballot: npt.NDArray[np.int64],
        task: AdvertiseKeys,
    ) -> Answer:
        parameters = membership.parameters
        mechanism = accounting.phase_mechanisms(parameters)[vote]
        if not isinstance(mechanism, BallotSum):  # pragma: no cover - both votes are ballot sums
            raise WrongStateError(f"'{vote}' is not a vote")
        if any(release.step == vote for release in self.ledger.releases_in(membership.phase)):
            raise RefusedError(f"this phone has voted: the {vote} of a phase is cast once")
        if task.index != membership.index:
            raise RefusedError("this phone's number changed within a phase")
        self._policy.check_sum(parameters, task.parameters)
        if task.parameters != vote_sum(parameters, mechanism, ballot.shape):
            raise RefusedError(f"the parameters of the {vote}'s secure sum are not those expected")
        values = noisy_ballot(ballot, mechanism, task.parameters.bound, self._random)
        participant = self._participant(task, values)
        answer = participant.answer(task)
        self._store.put("sum", participant.save())
        self._store.put(
            "membership", msgspec.msgpack.encode(msgspec.structs.replace(membership, vote=vote))
        )
        return answer

    def _continue_sum(self, task: SumTask) -> Answer:
        saved, membership = self._store.get("sum"), self._membership()
        if saved is None or membership is None:
            raise UnexpectedMessageError("a task of a secure sum that this phone is not in")
        participant = self._participant.restore(saved)
        answer = participant.answer(task)
        if isinstance(task, MaskInput):
            self._record(self.ledger, membership.phase, membership.parameters, membership.vote)
        if isinstance(task, Unmask):
            self._store.delete("sum")
        else:
            self._store.put("sum", participant.save())
        return answer

    def _finish(self, task: Result) -> None:
        centroids = task.centroids.array()
        if not len(centroids) or centroids.shape[1] > self._encoder.dimensions:
            raise UnexpectedMessageError(
                f"a result with centroids of shape {centroids.shape}; an embedding has "
                f"{self._encoder.dimensions} dimensions"
            )
        if len(task.labels) != len(centroids) or any(
            label >= len(task.label_names) for label in task.labels
        ):
            raise UnexpectedMessageError("a result whose labels do not fit its centroids")
        self._store.put("result", encode(task))
        self._leave(task.phase)

    def _end_statistics(self, task: Statistics) -> None:
        self._leave(task.phase)

    def _fail(self, task: Failed) -> None:
        self._leave(task.phase)

    def _leave(self, phase: bytes) -> None:
        """Forget this phase; another one that is under way goes on."""
        membership = self._membership()
        if membership is not None and membership.phase == phase:
            for name in ("membership", "sum", "answered"):
                self._store.delete(name)

    # ------------------------------------------------------------------------------ memory

    def _adopt_encoder(self) -> None:
        """Start anew under another encoder than before.

        Embeddings of two encoders do not compare, and the sound is gone: the old ones, the
        centroids published for them and a phase that is under way are of no use to anybody. What
        was released stays in the ledger.
        """
        name = self._encoder.name.encode()
        before = self._store.get(ENCODER)
        if before == name:
            return
        with self._store.transaction():
            if before is not None:
                self._store.forget_all()
                for kept in ("membership", "sum", "answered", "result"):
                    self._store.delete(kept)
            self._store.put(ENCODER, name)

    def _membership(self) -> _Membership | None:
        saved = self._store.get("membership")
        return None if saved is None else msgspec.msgpack.decode(saved, type=_Membership)

    def _member_of(self, phase: bytes) -> _Membership:
        membership = self._membership()
        if membership is None or membership.phase != phase:
            raise UnexpectedMessageError("a vote of a phase that this phone is not in")
        return membership

    def _points(
        self, parameters: PhaseParameters
    ) -> tuple[npt.NDArray[np.float32], tuple[str | None, ...]]:
        embeddings, choices = self._store.recordings()
        if not len(embeddings):
            return np.empty((0, parameters.dimensions), dtype=np.float32), ()
        return self._encoder.project(embeddings, parameters.dimensions), choices

    def _learner_in(self, phase: bytes) -> tuple[_Membership, PhaseParameters]:
        membership = self._member_of(phase)
        if not isinstance(membership.parameters, PhaseParameters):
            raise UnexpectedMessageError("centroids in a phase that has none")
        return membership, membership.parameters

    def _class_of(self, choice: str | None) -> str | None:
        try:
            return None if choice is None else self._hierarchy.class_of(choice)
        except UnknownLabelError:  # as in `_label_index`
            return None

    def _label_index(self, choice: str | None, labels: tuple[str, ...]) -> int:
        try:
            return self._hierarchy.index(choice, labels)
        except UnknownLabelError:
            # A choice that polls offered once. If it stopped the phone from answering, the phone's
            # silence would tell of that one recording.
            return UNLABELLED

    def _record(self, ledger: Ledger, phase: bytes, parameters: Parameters, *steps: str) -> None:
        """Write releases to the ledger; the transaction around it ends before the answer leaves."""
        try:
            entries = ledger.append(
                phase,
                [r for r in accounting.phase_releases(parameters) if r.step in steps],
            )
        except WrongStateError as error:
            raise RefusedError(str(error)) from error
        for entry in entries:
            self._store.append_ledger(entry)


_HANDLERS: dict[type, Callable[[Phone, Any], Answer | None]] = {
    Cluster: Phone._cluster,
    GlobalCentroids: Phone._vote_for_centroids,
    TopCentroids: Phone._vote_for_labels,
    CountContacts: Phone._count_contacts,
    ShareKeys: Phone._continue_sum,
    MaskInput: Phone._continue_sum,
    Unmask: Phone._continue_sum,
    Result: Phone._finish,
    Statistics: Phone._end_statistics,
    Failed: Phone._fail,
}
"""Task → what answers it."""


def _local_clustering(parameters: PhaseParameters) -> clustering.LocalClustering:
    if parameters.geometry is Geometry.SPHERICAL:
        return clustering.SphericalDPLloyd(
            parameters.local_centroids,
            parameters.budget.clustering,
            parameters.delta,
            parameters.recordings,
        )
    return clustering.DPLloyd(
        parameters.local_centroids, parameters.budget.clustering, parameters.recordings
    )


def _checked_centroids(matrix: Matrix, parameters: PhaseParameters) -> npt.NDArray[np.float32]:
    centroids = matrix.array()
    if not len(centroids) or centroids.shape[1] != parameters.dimensions:
        raise RefusedError(
            f"centroids of shape {centroids.shape}; this phase has {parameters.dimensions} "
            "dimensions and at least one centroid"
        )
    return centroids
