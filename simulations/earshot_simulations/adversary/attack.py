"""The behaviour of corrupted phones: one attack, and all attacks of a simulation."""

from __future__ import annotations

import contextlib
import itertools
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from earshot_protocol.errors import (
    EarshotError,
    InvalidInputError,
    InvalidParametersError,
    UnexpectedMessageError,
)
from earshot_protocol.geometry import Geometry, unit_rows
from earshot_protocol.overriding import override
from earshot_protocol.phases.learning import LocalCentroids
from earshot_protocol.phases.plan import Plan
from earshot_protocol.prio3.prio3 import Prio3, Sharded
from earshot_protocol.secure_sum.encoding import pack, unpack
from earshot_protocol.secure_sum.interface import Participant, Summation
from earshot_protocol.secure_sum.messages import SumTask
from earshot_protocol.summations import Opening
from earshot_protocol.two_operators.messages import PhoneReport, SendReport
from earshot_protocol.two_operators.participant import ReportingParticipant
from earshot_protocol.two_operators.rounds import DONE
from earshot_protocol.wire import Answer, Matrix, encode
from earshot_simulations.adversary.false_reports import false_shares, reported
from earshot_simulations.own_code import OwnCodeError, own_array, own_code
from earshot_simulations.populations import Recordings, SimulatedPopulation
from earshot_simulations.populations.own import checked, checked_points, short_text

_CANDIDATES = 1000


class Attack(Protocol):
    """What some phones do in place of the protocol: an attack of one's own inherits from this.

    An attack says which phones make it, and overrides what they do differently; by default they
    do as honest phones. With more than one job, phones run in other processes, to which the attack
    is copied, so it cannot remember anything from phone to phone. An attack of one's own may have a
    `key`, a text that changes whenever it does: sweeps need it.

    Attributes:
        name: Name of the attack in results; by default its class's.
        target: Place that it wants published, floats (dimensions,); None for none. A result says
            whether that succeeded.
    """

    name: ClassVar[str] = ""
    target: npt.NDArray[np.float32] | None = None

    @abstractmethod
    def phones(self, count: int, seed: int) -> Collection[int]:
        """Return the numbers of the phones that make the attack.

        Args:
            count: Number of all phones, whose numbers are 0 to count - 1.
            seed: Seed of the simulation.
        """

    def heard(self, phone: int, recordings: Recordings) -> Recordings:
        """Return the recordings in a phone's store, given what it heard."""
        del phone
        return recordings

    def published(
        self, phone: int, centroids: npt.NDArray[np.float32]
    ) -> npt.NDArray[np.floating[Any]]:
        """Return the centroids that a phone publishes on the local route, of the same shape.

        Args:
            phone: Number of the phone.
            centroids: Centroids with their noise, as the protocol has them.
        """
        del phone
        return centroids

    def added(
        self, phone: int, values: npt.NDArray[np.int64], parameters: Any
    ) -> npt.NDArray[np.int64]:
        """Return what a phone adds to a secure sum, whole numbers of the same shape.

        Args:
            phone: Number of the phone.
            values: Its ballot or its part of the sum, as the protocol has it.
            parameters: Parameters of the sum: `phones`, and `bound`, the largest magnitude of an
                entry. A phone can exceed it only in a sum by two operators; where inputs are
                proved, they refuse its report then, and every other one that is not valid.
        """
        del phone, parameters
        return values

    def sent(self, phone: int, answer: Answer) -> Answer | bytes:
        """Return the message that a phone sends, given the answer that the protocol asks for."""
        del phone
        return answer

    def vanishing(
        self, others: Mapping[str, tuple[int, ...]], plan: Plan
    ) -> Mapping[str, tuple[int, ...]]:
        """Return the phones that vanish before each step, given those that vanish by themselves.

        Args:
            others: Phones by the name of the step, every step of the plan.
            plan: Steps of the phase.
        """
        del plan
        return others


@dataclass(frozen=True)
class Corruption:
    """An attack, and the phones that make it.

    Attributes:
        name: Name of the attack.
        attack: The attack.
        phones: Phones that make it.
        is_own: Whether it is the caller's own, so that what it returns is checked.
    """

    name: str
    attack: Attack
    phones: frozenset[int]
    is_own: bool = False

    @classmethod
    def of(cls, own: Attack, count: int, seed: int) -> Corruption:
        """Return an attack of the caller's own with its phones.

        Raises:
            InvalidParametersError: It lacks a method or a usable name, or names phones that there
                are not.
            OwnCodeError: It raised an exception.
        """
        kind = type(own).__name__
        name = short_text(f"attack {kind}", "name", getattr(own, "name", "") or kind)
        lacking = [each for each in _METHODS if not callable(getattr(own, each, None))]
        if lacking:
            raise InvalidParametersError(
                f"attack {name}: has no {' and no '.join(lacking)}; let its class inherit from "
                "earshot_simulations.Attack"
            )
        with own_code(f"attack {name}: phones({count}, {seed})"):
            chosen = [_number(each) for each in own.phones(count, seed)]
        wrong = [each for each in chosen if not 0 <= each < count]
        if wrong:
            raise InvalidParametersError(
                f"attack {name}: phones() names phone {wrong[0]}: must be 0 to {count - 1}"
            )
        return cls(name, own, frozenset(chosen), True)

    @contextlib.contextmanager
    def asked(self, call: str, phone: int) -> Iterator[None]:
        """Name what the caller's own code raises."""
        if self.is_own:
            with own_code(f"attack {self.name}: {call} of phone {phone}"):
                yield
        else:
            yield


def _target(name: str, given: Any, dimensions: int) -> npt.NDArray[np.float32] | None:
    if given is None:
        return None
    where = f"attack {name}: target"
    target = own_array(where, given)
    if target.shape != (dimensions,):
        raise OwnCodeError(f"{where} has shape {target.shape}: must be ({dimensions},)")
    return checked_points(where, target[None], dimensions).reshape(dimensions)


_METHODS = ("phones", "heard", "published", "added", "sent", "vanishing")


def _number(phone: Any) -> int:
    if isinstance(phone, bool) or not isinstance(phone, int | np.integer):
        raise TypeError(f"a phone's number is a whole number, not {phone!r}")
    return int(phone)


@dataclass(frozen=True)
class Attacks:
    """The attacks on one simulation.

    Attributes:
        made: Attacks, in the order in which they change what a phone does.
        target: Place that the adversary wants published, float32 (dimensions,); None for none.
        geometry: Geometry of what phones hear.
        labels: Number of labels.
    """

    made: tuple[Corruption, ...] = ()
    target: npt.NDArray[np.float32] | None = None
    geometry: Geometry = Geometry.SPHERICAL
    labels: int = 1

    def joined(self, own: Attack | None, population: SimulatedPopulation, seed: int) -> Attacks:
        """Return these attacks and, after them, one of the caller's own, if there is one.

        Raises:
            InvalidParametersError, OwnCodeError: It cannot be used, as for `Corruption.of`.
        """
        if own is None:
            return self
        added = Corruption.of(own, population.phones, seed)
        if added.name in self.members:
            raise InvalidParametersError(
                f"attack {added.name}: the settings make an attack of this name, too; give another"
            )
        made = (*self.made, added)
        target = _target(made[-1].name, getattr(own, "target", None), population.dimensions)
        return Attacks(
            made,
            target if self.target is None else self.target,
            population.geometry,
            len(population.labels),
        )

    @property
    def members(self) -> dict[str, frozenset[int]]:
        """Phones that make each attack, by its name."""
        return {each.name: each.phones for each in self.made}

    @property
    def corrupted(self) -> frozenset[int]:
        """Phones that make any attack."""
        return frozenset().union(*(each.phones for each in self.made))

    def heard(self, phone: int, recordings: Recordings) -> Recordings:
        """Return the recordings in a phone's store, given what it heard."""
        for each in self._of(phone):
            dimensions = recordings.points.shape[1]
            with each.asked("heard", phone):
                recordings = each.attack.heard(phone, recordings)
            if each.is_own:
                where = f"attack {each.name}: heard({phone})"
                recordings = checked(where, recordings, dimensions, self.geometry, self.labels)
        return recordings

    def summation(self, phone: int, summation: Summation) -> Summation:
        """Return the summation in which a phone takes part, with what attacks add to a sum."""
        makes = tuple(self._of(phone))
        if not makes:
            return summation
        adding = _Adding(summation.participant, phone, makes)
        return replace(summation, participant=adding)  # type: ignore[arg-type]

    def sent(self, phone: int, answer: Answer) -> bytes:
        """Return the bytes that a phone sends, given its honest answer."""
        given: Answer | bytes = answer
        for each in self._of(phone):
            if isinstance(given, bytes):
                break
            with each.asked("published", phone):
                if isinstance(given, LocalCentroids):
                    given = _published(each.attack, phone, given)
            with each.asked("sent", phone):
                given = each.attack.sent(phone, given)
                if not isinstance(given, bytes | msgspec.Struct):
                    raise TypeError(f"it returned a {type(given).__name__}: must be a message")
        return given if isinstance(given, bytes) else encode(given)

    def dropouts(
        self, others: Mapping[str, tuple[int, ...]], plan: Plan, phones: int
    ) -> dict[str, tuple[int, ...]]:
        """Return the phones that vanish before each step, given the honest dropouts.

        Args:
            others: Phones that vanish by themselves before each step.
            plan: Plan of the phase.
            phones: Number of phones.

        Raises:
            OwnCodeError: An attack of the caller's own names other steps, or phones that there are
                not.
        """
        leave = dict(others)
        for each in self.made:
            if not each.is_own:
                leave = dict(each.attack.vanishing(leave, plan))
                continue
            with own_code(f"attack {each.name}: vanishing"):
                own = each.attack.vanishing(leave, plan)
                found = {step: tuple(map(_number, gone)) for step, gone in own.items()}
            if found.keys() != others.keys():
                raise OwnCodeError(
                    f"attack {each.name}: vanishing names the steps {', '.join(found) or 'none'}: "
                    f"must be {', '.join(others)}"
                )
            for phone in itertools.chain.from_iterable(found.values()):
                if not 0 <= phone < phones:
                    raise OwnCodeError(
                        f"attack {each.name}: vanishing names phone {phone}: must be 0 to "
                        f"{phones - 1}"
                    )
            leave = found
        return leave

    def _of(self, phone: int) -> Iterable[Corruption]:
        return (each for each in self.made if phone in each.phones)


def _published(attack: Attack, phone: int, answer: LocalCentroids) -> LocalCentroids:
    centroids = answer.centroids.array()
    own = np.asarray(attack.published(phone, centroids))
    if own.shape != centroids.shape:
        raise ValueError(f"published has shape {own.shape}: must be {centroids.shape}")
    return msgspec.structs.replace(answer, centroids=Matrix.of(own))


class _Adding:
    """Maker of participants whose input is what attacks make of it."""

    def __init__(
        self, honest: type[Participant], phone: int, makes: tuple[Corruption, ...]
    ) -> None:
        self._honest = honest
        self._phone = phone
        self._makes = makes

    def __call__(self, task: Opening, values: npt.NDArray[np.int64], told: bytes) -> Participant:
        for each in self._makes:
            with each.asked("added", self._phone):
                values = each.attack.added(self._phone, values, task.parameters)
        try:
            whole = isinstance(values, np.ndarray) and values.dtype.kind == "i"
            if whole and isinstance(task, SendReport):
                unproved = task.parameters.proof is None
                return (_BeyondBound if unproved else _FalselyProved)(task, values, told)
            return self._honest(task, values, told)
        except EarshotError as error:
            own = [each.name for each in self._makes if each.is_own]
            if not own:
                raise
            raise OwnCodeError(
                f"attack {own[-1]}: what phone {self._phone} adds to a sum cannot be sent: {error}"
            ) from error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._honest, name)


class _BeyondBound(ReportingParticipant):
    """Participant whose entries are as large as words hold.

    The phone's own program checks the bound of an entry, so a phone with another program can exceed
    it. Neither operator sees that, unless inputs are proved.
    """

    @override
    def __init__(self, task: SendReport, values: npt.NDArray[np.int64], told: bytes = b"") -> None:
        self._parameters = task.parameters
        within = np.clip(values, -self._parameters.bound, self._parameters.bound)
        super().__init__(task, within, told)
        self._beyond = values - within

    @override
    def answer(self, task: SumTask) -> PhoneReport:
        report = super().answer(task)
        share = unpack(report.share, self._parameters)
        share += self._beyond.reshape(-1).astype(share.dtype)
        packed = pack(share, self._parameters.modulus_bits)
        return msgspec.structs.replace(report, share=packed)


class _FalselyProved(ReportingParticipant):
    """Participant that proves any vector as well as it can be proved.

    The phone's own program refuses a vector that is not valid, so one with another program sends
    it, and the operators refuse it.
    """

    @override
    def __init__(self, task: SendReport, values: npt.NDArray[np.int64], told: bytes = b"") -> None:
        super().__init__(task, np.zeros_like(values), told)
        self._values = values.reshape(-1).astype(np.int64)

    @override
    def answer(self, task: SumTask) -> PhoneReport:
        if self.done or not isinstance(task, SendReport):
            raise UnexpectedMessageError("a report was sent already, or was not requested")

        def shares(proof: Prio3, nonce: bytes) -> Sharded:
            with contextlib.suppress(InvalidInputError):
                return proof.shard(self._values, nonce)
            return false_shares(proof, self._values.tolist(), nonce)

        self._round = DONE
        return reported(task, shares)


def opposite_place(population: SimulatedPopulation, label: int) -> npt.NDArray[np.float32]:
    """Return the direction opposite to the mean held-out sound of a label, float32 (dimensions,).

    Raises:
        InvalidParametersError: No held-out recording has the label.
    """
    held_out = population.held_out()
    own = held_out.points[held_out.scenes == label]
    if not len(own):
        raise InvalidParametersError(
            f"adversary.pushed_label: no held-out recording is of '{population.labels[label]}'"
        )
    return np.asarray(unit_rows(-own.mean(axis=0, dtype=np.float64)[None])[0], dtype=np.float32)


def far_place(population: SimulatedPopulation, seed: int) -> npt.NDArray[np.float32]:
    """Return the random place farthest from all held-out recordings, float32 (dimensions,)."""
    from scipy.spatial.distance import cdist

    generator = np.random.default_rng([seed, 0xF])
    places = generator.uniform(-1, 1, (_CANDIDATES, population.dimensions))
    if population.geometry is Geometry.SPHERICAL:
        places = generator.standard_normal(places.shape)
        places /= np.linalg.norm(places, axis=1, keepdims=True)
    distances = cdist(places, population.held_out().points).min(axis=1)
    return np.asarray(places[distances.argmax()], dtype=np.float32)
