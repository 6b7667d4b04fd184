"""A simulated statistics phase: contacts are counted in each kind of place, beside the truth."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import date
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.environments import LabelHierarchy
from earshot_protocol.errors import InvalidParametersError, WrongStateError
from earshot_protocol.geometry import Geometry
from earshot_protocol.overriding import override
from earshot_protocol.phases import statistics_budget
from earshot_protocol.phases.places import UNNAMED, AgreedPlaces, Places
from earshot_protocol.phases.plan import PUBLISHED
from earshot_protocol.phases.statistics import Statistics, StatisticsParameters
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.voting.vectors import projected
from earshot_server.phases.options import NO_OPTION, made
from earshot_simulations.engine.course import Course
from earshot_simulations.fields import kinds
from earshot_simulations.phases.kept import read
from earshot_simulations.phases.own import Own
from earshot_simulations.phases.run import PHASE_FAILED, PhaseFindings, Run
from earshot_simulations.phases.settings import (
    CrowdSettings,
    PhaseSettings,
    PolicyChoice,
    SummationChoice,
    encoder_digest,
)
from earshot_simulations.populations import Recordings, SimulatedPopulation
from earshot_simulations.populations.own import OwnPopulation
from earshot_simulations.reporting.charts import histogram
from earshot_simulations.reporting.drawing import Picture
from earshot_simulations.reporting.words import at_delta, counted, optional, percent, whole

_NORMAL = 1.96
"""Deviations on either side of an estimate that a 95 % interval reaches."""


# ------------------------------------------------------------------------------------------- found


@dataclass(frozen=True, kw_only=True)
class Contacts:
    """The contacts of the phones whose counts were added up, which no server knows.

    Attributes:
        truth: Contacts in each of L kinds of place, by the scene in which they were made.
        counts: The same contacts in the 2L + 1 entries of the sum: labelled ones by label,
            unlabelled ones by the name that the places give them, and unknown ones.
        projected: The same counts, those of each phone projected to the length B.
        misnamed: Contacts that have the name of another scene, by their label or by the places.
    """

    truth: tuple[int, ...]
    counts: tuple[int, ...]
    projected: tuple[float, ...]
    misnamed: int


@dataclass(frozen=True, kw_only=True)
class CountScores:
    """The accuracy of published counts; shares are of all contacts of the phones that came.

    Attributes:
        error: Median over the kinds of place of the relative error of their number of contacts.
        share_error: Half the sum over the kinds of place of the errors of their shares of all
            assigned contacts: the part of the contacts that is in the wrong place.
        inside: Share of the 2L + 1 numbers whose 95 % interval contains the phones' projected
            counts; noise alone makes it 95 % on average.
        covered: Share of the kinds of place whose 95 % interval contains the true number of
            contacts, which projection, unknown contacts and wrong names may lie outside of.
        lost: Share of the contacts that projection lost.
        unknown: Share of unknown contacts, as published: of all published contacts.
        unknown_truth: Share of contacts that had neither a label nor a name.
        misnamed: Share of contacts with the name of another scene.
        clear: Share of the kinds of place whose number stands clear of the noise.
    """

    error: float | None
    share_error: float | None
    inside: float
    covered: float
    lost: float
    unknown: float | None
    unknown_truth: float
    misnamed: float
    clear: float


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class StatisticsFindings(PhaseFindings):
    """Contacts in each kind of place, published and true.

    Attributes:
        parameters: Parameters of the phase.
        published: Published result; None if the phase failed.
        contacts: Contacts of the phones that were counted; None if the phase failed.
        scores: Scores of the result; None if the phase failed, or its phones had no contact.
    """

    phase: ClassVar[str] = "statistics phase"
    template: ClassVar[str] = "phases/statistics.html"
    command: ClassVar[str] = "earshot simulate statistics"

    parameters: StatisticsParameters
    published: Statistics | None = None
    contacts: Contacts | None = None
    scores: CountScores | None = None

    @override
    def described(self, run: Run[Any]) -> dict[str, object]:
        ended, found = run.interrupted, self.published
        return {
            "version": run.version,
            "failure": None if ended is None else ended.removeprefix(PHASE_FAILED),
            "phones": run.phones,
            "survivors": run.survivors,
            "counted_phones": None if found is None else found.phones,
            "scores": None if self.scores is None else asdict(self.scores),
            "noise": self.parameters.noise,
            "deviation": None if found is None else found.deviation,
            "places": self._places(),
            "unknown": self._unknown(),
            "privacy": run.spent(),
            "seconds": {"steps": run.by_step(lambda step: step.seconds), "total": run.seconds},
            "refused_by_step": run.by_step(lambda step: step.refused),
            "bytes_up_per_phone": run.by_step(lambda step: step.per_phone(step.bytes_up)),
            "answered_by_step": {step.step: step.answered for step in run.steps},
            "peak_memory_mb": run.peak_memory_mb,
            "configuration": run.configuration,
            "notes": run.notes,
        }

    def _places(self) -> list[dict[str, object]]:
        found, held = self.published, self.contacts
        if found is None or held is None:
            return []
        labels = len(found.label_names)
        return [
            {
                "label": name,
                "truth": held.truth[row],
                "assigned": found.assigned[row],
                "clear": found.clear[row],
                "labelled": found.labelled[row],
                "labelled_p_value": found.labelled_p_values[row],
                "labelled_truth": held.counts[row],
                "named": found.named[row],
                "named_p_value": found.named_p_values[row],
                "named_truth": held.counts[labels + row],
            }
            for row, name in enumerate(found.label_names)
        ]

    def _unknown(self) -> dict[str, object] | None:
        found, held = self.published, self.contacts
        if found is None or held is None:
            return None
        return {
            "published": found.unknown,
            "p_value": found.unknown_p_value,
            "truth": held.counts[-1],
        }

    @override
    def outcome(self, run: Run[Any]) -> str:
        found, scores = self.published, self.scores
        if found is None:
            return "Nothing was published."
        who = f"{whole(found.phones)} of {counted(run.phones, 'phone')}"
        cost = f"the phase costs ε = {at_delta(run.together[Unit.PHONE])} per phone."
        if scores is None:
            return f"{who} were counted, and none had a contact; {cost}"
        places = len(found.label_names)
        clear = sum(found.clear)
        said = f"{who} were counted in {counted(places, 'kind')} of place"
        if scores.error is not None:
            said += f", with a median error of {percent(scores.error)}"
        noise = "all clear of the noise" if clear == places else f"{clear} clear of the noise"
        return f"{said} ({noise}); {cost}"

    @override
    def figures(self) -> dict[str, str]:
        scores, found = self.scores, self.published
        if scores is None or found is None:
            return {}
        return {
            "median error of a place": optional(scores.error, percent),
            "contacts in a wrong place": optional(scores.share_error, percent),
            "deviation of the noise": f"{found.deviation:.3g} contacts",
            "clear of the noise": percent(scores.clear),
            "intervals with the sent counts": percent(scores.inside),
            "intervals with the truth": percent(scores.covered),
            "lost by projection": percent(scores.lost),
            "unknown, as published": optional(scores.unknown, percent),
            "unknown in truth": percent(scores.unknown_truth),
            "wrongly named": percent(scores.misnamed),
        }

    @override
    def picture(self) -> Picture | None:
        """Return the contacts in each kind of place, as published, beside the true ones."""
        found, held = self.published, self.contacts
        if found is None or held is None:
            return None
        published = np.rint(found.assigned).astype(np.int64)
        return histogram(found.label_names, np.maximum(published, 0), np.array(held.truth))

    def rows(self) -> list[list[str]]:
        """Return the contacts in each kind of place, as text; none if the phase failed."""
        found, held = self.published, self.contacts
        if found is None or held is None:
            return []
        within = _NORMAL * np.sqrt(2) * found.deviation
        return [
            [
                name,
                whole(held.truth[row]),
                f"{_signed(found.assigned[row])} ± {whole(round(within))}",
                "" if found.clear[row] else "may be noise",
                _signed(found.labelled[row]),
                _signed(found.named[row]),
            ]
            for row, name in enumerate(found.label_names)
        ]

    def unknown_row(self) -> list[str]:
        """Return the unknown contacts, as text; none if the phase failed."""
        found, held = self.published, self.contacts
        if found is None or held is None:
            return []
        within = _NORMAL * found.deviation
        published = f"{_signed(found.unknown)} ± {whole(round(within))}"
        return ["Unknown", whole(held.counts[-1]), published, "", "", ""]


def _signed(amount: float) -> str:
    rounded = round(amount)
    return f"−{whole(-rounded)}" if rounded < 0 else whole(rounded)


def contacts_of(
    phones: NDArray[np.int64], population: SimulatedPopulation, parameters: StatisticsParameters
) -> Contacts:
    """Return the contacts of some phones, as they were made and as phones count them.

    Args:
        phones: Numbers of the phones.
        population: What they heard.
        parameters: Parameters of the phase.
    """
    labels = len(parameters.labels)
    places = None if parameters.places is None else parameters.places.named(parameters.labels)
    index = {name: row for row, name in enumerate(parameters.labels)}
    truth, counts = np.zeros(labels, np.int64), np.zeros(2 * labels + 1, np.int64)
    sums, misnamed = np.zeros(2 * labels + 1), 0
    for phone in phones.tolist():
        heard = _within(population.recordings(phone), parameters)
        named = np.full(len(heard.points), UNNAMED)
        if places is not None and len(named):
            found = places.nearest(heard.points)
            named = np.array([UNNAMED if name is None else index[name] for name in found])
        is_labelled = heard.labels >= 0
        own = np.where(is_labelled, heard.labels, named)
        entries = np.where(own < 0, 2 * labels, np.where(is_labelled, own, labels + own))
        counted_here = np.bincount(entries, minlength=2 * labels + 1)
        truth += np.bincount(heard.scenes[heard.scenes >= 0], minlength=labels)
        counts += counted_here
        sums += projected(counted_here, parameters.contacts) * parameters.contacts
        misnamed += int(((own >= 0) & (heard.scenes >= 0) & (own != heard.scenes)).sum())
    return Contacts(
        truth=tuple(truth.tolist()),
        counts=tuple(counts.tolist()),
        projected=tuple(sums.tolist()),
        misnamed=misnamed,
    )


def _within(heard: Recordings, parameters: StatisticsParameters) -> Recordings:
    """Return the recordings of the phase's window."""
    days = [None] * len(heard.points) if heard.days is None else heard.days.tolist()
    return heard.rows(np.array([parameters.counts(day) for day in days], dtype=np.bool_))


def score(published: Statistics, held: Contacts) -> CountScores | None:
    """Score published counts by the phones' contacts; None if they had none."""
    total = sum(held.counts)
    if not total:
        return None
    numbers = np.array([*published.labelled, *published.named, published.unknown])
    assigned, deviation = np.array(published.assigned), published.deviation
    truth = np.array(held.truth)
    off, there = np.abs(assigned - truth), truth > 0
    everything, known = numbers.sum(), assigned.sum()
    shares = None
    if known > 0 and there.any():
        shares = float(np.abs(assigned / known - truth / truth.sum()).sum() / 2)
    return CountScores(
        error=float(np.median(off[there] / truth[there])) if there.any() else None,
        share_error=shares,
        inside=float((np.abs(numbers - held.projected) <= _NORMAL * deviation).mean()),
        covered=float((off <= _NORMAL * np.sqrt(2) * deviation).mean()),
        lost=1 - sum(held.projected) / total,
        unknown=float(published.unknown / everything) if everything > 0 else None,
        unknown_truth=held.counts[-1] / total,
        misnamed=held.misnamed / total,
        clear=float(np.mean(published.clear)),
    )


# ---------------------------------------------------------------------------------------- settings


@dataclass(frozen=True, kw_only=True)
class StatisticsSettings(CrowdSettings, PhaseSettings[StatisticsFindings]):
    """The settings of one simulated statistics phase, named like the command's options.

    Attributes:
        recordings: Contacts of a phone, on average.
        contacts: Length to which a phone's counts are projected (B), about three times a phone's
            usual contacts.
        places: Result of a simulated discovery or learning phase over such phones, or its folder,
            whose places name unlabelled contacts; by default unlabelled contacts are unknown.
        since: First day (UTC) that counts, for a population of one's own that tells days.
        until: Day after the last one that counts.
        epsilon: Budget ε of the phase, per phone.
        policy: Policy of phones.
    """

    phones: int = 1000
    recordings: int = 3
    dropout: float = 0.05
    contacts: int = statistics_budget.CONTACTS
    places: str | None = None
    since: Annotated[date | None, NO_OPTION] = None
    until: Annotated[date | None, NO_OPTION] = None
    epsilon: float = statistics_budget.EPSILON
    policy: PolicyChoice = PolicyChoice.DEFAULT

    @override
    def check_own(self, own: Own, population: OwnPopulation | None) -> None:
        if self.since is not None and own.population is None:
            raise InvalidParametersError(
                f"since={self.since}: only a population of one's own knows on which day a "
                "recording was made; leave it out"
            )

    @property
    @override
    def agreement(self) -> PolicyChoice:
        return self.policy

    @property
    @override
    def projected(self) -> int:
        places = self._named_places()
        return super().projected if places is None else places.points.shape[1]

    @override
    def configuration(self) -> dict[str, object]:
        return asdict(self)

    @override
    def any_parameters(self, population: OwnPopulation | None = None) -> StatisticsParameters:
        if population is not None:
            return self.parameters(population)
        labels = tuple(f"label {label}" for label in range(self.scenes))
        return self._parameters(labels, None)

    @override
    def parameters(self, population: SimulatedPopulation) -> StatisticsParameters:
        places = self._named_places()
        return self._parameters(
            population.labels, None if places is None else self._agreed(places, population)
        )

    def _parameters(
        self, labels: tuple[str, ...], places: AgreedPlaces | None
    ) -> StatisticsParameters:
        known = {"labels": labels, "places": places, "summation": self.summation.protocol}
        parameters = made(StatisticsParameters, self, noise=1.0, **known)
        return statistics_budget.affordable(parameters, self.epsilon)

    def _named_places(self) -> Places | None:
        """Return the places of the earlier run's result."""
        if self.places is None:
            return None
        written = read(self.places)
        kept = written.figures["provenance"].get("encoder")
        if kept is not None and kept != encoder_digest(self.encoder):
            raise InvalidParametersError(
                f"places={self.places}: that run had another encoder; choose the same (--encoder)"
            )
        found = written.figures["centroids"]
        if not found:
            raise InvalidParametersError(f"places={self.places}: that run found no place")
        return Places(
            np.array([each["centroid"] for each in found], dtype=np.float32),
            tuple(each["label"] for each in found),
            Geometry.SPHERICAL,
            written.figures.get("radius"),
        )

    def _agreed(self, places: Places, population: SimulatedPopulation) -> AgreedPlaces:
        """Return places for all phones, if they name what this population hears."""
        dimensions = places.points.shape[1]
        if dimensions != population.dimensions:
            raise InvalidParametersError(
                f"places={self.places}: are of {dimensions} dimensions, and what these phones hear "
                f"of {population.dimensions}; name the result of a discovery phase over such phones"
            )
        hierarchy = LabelHierarchy.flat(population.labels)
        agreed = AgreedPlaces.of(places, population.encoder, hierarchy)
        if all(label == UNNAMED for label in agreed.labels):
            raise InvalidParametersError(
                f"places={self.places}: none has the name of a label of these phones; name the "
                "result of a discovery phase over such phones"
            )
        return agreed

    @override
    def found(self, population: SimulatedPopulation, course: Course) -> StatisticsFindings:
        parameters = self.parameters(population)
        if course.coordinator.step != PUBLISHED:
            return StatisticsFindings(parameters=parameters)
        published = course.coordinator.result()
        if not isinstance(published, Statistics):
            raise WrongStateError(f"a statistics phase published a {type(published).__name__}")
        held = contacts_of(_counted(course, parameters), population, parameters)
        return StatisticsFindings(
            parameters=parameters,
            published=published,
            contacts=held,
            scores=score(published, held),
        )

    @override
    def notes(
        self, population: SimulatedPopulation, success: object, found: StatisticsFindings
    ) -> list[str]:
        said = []
        if self.summation is SummationChoice.IDEAL:
            said.append("The secure sum was replaced by plain addition: nothing was protected.")
        if self.places is None:
            said.append("No places name unlabelled contacts, so all of these are unknown.")
        published = found.published
        if published is not None and not all(published.clear):
            few = sum(published.clear) or "None"
            said.append(
                f"{few} of {counted(len(published.clear), 'kind')} of place have a number that "
                "stands clear of the noise; the others may be noise alone. More phones or a larger "
                "ε tell more of them."
            )
        return said


def _counted(course: Course, parameters: StatisticsParameters) -> NDArray[np.int64]:
    """Return the phones whose counts were added up: they came, and stayed until they had sent."""
    sending = max(place for place, step in enumerate(parameters.plan().steps) if step.releases)
    sent = {step.name for step in parameters.plan().steps[: sending + 1]}
    vanished = {phone for step in course.steps if step.step in sent for phone in step.dropped}
    gone = vanished | course.refused.keys()
    return np.array([phone for phone in range(parameters.phones) if phone not in gone], np.int64)


# The command line reads the constructor, whose inherited annotations are strings of other modules.
StatisticsSettings.__init__.__annotations__.update(kinds(StatisticsSettings))
