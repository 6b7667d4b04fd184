"""A simulated labelling phase: public samples get the labels that most phones agree on."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from earshot_client.voters import NearestRecordings
from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError, WrongStateError
from earshot_protocol.overriding import override
from earshot_protocol.phases import labelling_budget
from earshot_protocol.phases.labelling import LARGEST_SAMPLES, Labelled, LabellingParameters
from earshot_protocol.phases.plan import PUBLISHED
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.wire import Matrix
from earshot_server.dashboard.outcomes import answer_of
from earshot_server.phases.options import VoteOptions
from earshot_simulations.engine.course import Course
from earshot_simulations.fields import kinds
from earshot_simulations.phases.own import Own
from earshot_simulations.phases.run import PHASE_FAILED, PhaseFindings, Run
from earshot_simulations.phases.settings import CrowdSettings, PhaseSettings, PolicyChoice
from earshot_simulations.populations import Recordings, SimulatedPopulation
from earshot_simulations.populations.own import OwnPopulation
from earshot_simulations.reporting.charts import histogram
from earshot_simulations.reporting.drawing import Picture
from earshot_simulations.reporting.words import at_delta, chance, counted, optional, percent, whole

_SAMPLES = 0xD
"""Number of the generator, under a seed, that chooses samples."""
_ASKED_ALONE = 200
"""Number of phones whose own labels are scored individually."""


# ------------------------------------------------------------------------------------------- found


@dataclass(frozen=True, kw_only=True)
class LabelScores:
    """The accuracy of labels; shares are of all samples.

    Attributes:
        answered: Share of samples on which enough phones agree.
        right: Share of answered samples with the true label; None without any.
        clear: Share of samples whose answer is clear of the noise.
        clear_right: Share of clear samples with the true label; None without any.
        proposed_right: Share of samples whose label with the most noisy votes is true, answered or
            not.
        alone: Share of samples that a phone labels correctly by itself, on average over some
            phones.
        best_alone: Share of samples that the best of these phones labels correctly.
    """

    answered: float
    right: float | None
    clear: float
    clear_right: float | None
    proposed_right: float
    alone: float
    best_alone: float


@dataclass(frozen=True, kw_only=True, repr=False)
class LabelFindings(PhaseFindings):
    """Labels of the samples of a labelling phase.

    Attributes:
        parameters: Parameters of the phase.
        truth: True label of each sample, as an index into the labels.
        published: Published result; None if the phase failed.
        scores: Scores of the result; None if the phase failed.
    """

    phase: ClassVar[str] = "labelling phase"
    template: ClassVar[str] = "phases/labelling.html"
    command: ClassVar[str] = "earshot simulate labelling"
    unit_note: ClassVar[str] = " of the largest weight"

    parameters: LabellingParameters
    truth: tuple[int, ...]
    published: Labelled | None = None
    scores: LabelScores | None = None

    @override
    def described(self, run: Run[Any]) -> dict[str, object]:
        ended = run.interrupted
        return {
            "version": run.version,
            "failure": None if ended is None else ended.removeprefix(PHASE_FAILED),
            "phones": run.phones,
            "survivors": run.survivors,
            "scores": None if self.scores is None else asdict(self.scores),
            "threshold": self.parameters.threshold,
            "votes_noise": self.parameters.votes_noise,
            "check_noise": self.parameters.check_noise,
            "samples": self._samples(),
            "privacy": run.spent(),
            "seconds": {"steps": run.by_step(lambda step: step.seconds), "total": run.seconds},
            "refused_by_step": run.by_step(lambda step: step.refused),
            "bytes_up_per_phone": run.by_step(lambda step: step.per_phone(step.bytes_up)),
            "answered_by_step": {step.step: step.answered for step in run.steps},
            "peak_memory_mb": run.peak_memory_mb,
            "configuration": run.configuration,
            "notes": run.notes,
        }

    def _samples(self) -> list[dict[str, object]]:
        found, names = self.published, self.parameters.labels
        if found is None:
            return []
        return [
            {
                "truth": names[scene],
                "answer": names[found.labels[row]] if found.labels[row] >= 0 else None,
                "name": found.names[row],
                "agreement": found.agreement[row],
                "p_value": found.name_p_values[row],
                "votes": dict(zip(names, found.label_votes[row], strict=True)),
            }
            for row, scene in enumerate(self.truth)
        ]

    @override
    def outcome(self, run: Run[Any]) -> str:
        scores = self.scores
        if scores is None:
            return "Nothing was published."
        who = f"{whole(run.survivors)} of {counted(run.phones, 'phone')}"
        said = f"{who} labelled {percent(scores.answered)} of {counted(len(self.truth), 'sample')}"
        if scores.right is not None:
            said += f", {percent(scores.right)} of these correctly"
            clear = percent(scores.clear) if scores.clear else "none"
            said += f" ({clear} of the samples clear of the noise)"
        return (
            f"{said}; a phone alone labels {percent(scores.alone)} correctly on average; the phase "
            f"costs ε = {at_delta(run.together[Unit.PHONE])} per phone."
        )

    @override
    def figures(self) -> dict[str, str]:
        scores = self.scores
        if scores is None:
            return {}
        alone = f"{percent(scores.alone)} (mean), {percent(scores.best_alone)} (best)"
        return {
            "samples answered": percent(scores.answered),
            "of these right": optional(scores.right, percent),
            "clear of the noise": percent(scores.clear),
            "right where clear": optional(scores.clear_right, percent),
            "right by votes alone": percent(scores.proposed_right),
            "right by one phone": alone,
        }

    @override
    def picture(self) -> Picture | None:
        """Return the number of samples that got each label, beside those that have it."""
        if self.published is None:
            return None
        names, labels = self.parameters.labels, np.array(self.published.labels)
        answered = np.bincount(labels[labels >= 0], minlength=len(names))
        return histogram(names, answered, np.bincount(self.truth, minlength=len(names)))

    def answers(self) -> list[list[str]]:
        """Return each sample's true label and its answer, as text; none if the phase failed."""
        found, names = self.published, self.parameters.labels
        if found is None:
            return []
        return [
            [str(row + 1), names[scene], answer_of(found, row), chance(found.name_p_values[row])]
            for row, scene in enumerate(self.truth)
        ]


def score(published: Labelled, samples: Recordings, population: SimulatedPopulation) -> LabelScores:
    """Score the published labels, and those of single phones."""
    labels, truth = np.array(published.labels), samples.scenes
    answered = labels >= 0
    clear = np.array([name is not None for name in published.names])
    proposed = np.array(published.label_votes).argmax(axis=1)
    alone = [
        _alone(population, phone, samples) for phone in range(min(population.phones, _ASKED_ALONE))
    ]
    return LabelScores(
        answered=float(answered.mean()),
        right=_share(labels[answered] == truth[answered]),
        clear=float(clear.mean()),
        clear_right=_share(labels[clear] == truth[clear]),
        proposed_right=float((proposed == truth).mean()),
        alone=float(np.mean(alone)),
        best_alone=float(np.max(alone)),
    )


def _alone(population: SimulatedPopulation, phone: int, samples: Recordings) -> float:
    """Return the share of samples that a phone labels correctly by its own recordings."""
    heard = population.recordings(phone)
    names = (*population.labels, None)  # index -1, unlabelled, yields None
    labels = [names[label] for label in heard.labels.tolist()]
    answers = NearestRecordings.of(heard.points, labels).answers(samples.points)
    truth = [population.labels[scene] for scene in samples.scenes]
    return float(np.mean([given == true for given, true in zip(answers, truth, strict=True)]))


def _share(right: Any) -> float | None:
    return float(right.mean()) if len(right) else None


# ---------------------------------------------------------------------------------------- settings


@dataclass(frozen=True, kw_only=True)
class LabellingSettings(VoteOptions, CrowdSettings, PhaseSettings[LabelFindings]):
    """The settings of one simulated labelling phase, named like the command's options.

    Attributes:
        samples: Recordings to label, none of which a phone has heard (B).
        epsilon: Budget ε of the phase, for a phone of weight 1.
        policy: Policy of phones.
    """

    phones: int = 1000
    recordings: int = 20
    dropout: float = 0.05
    samples: int = 100
    epsilon: float = labelling_budget.EPSILON
    policy: PolicyChoice = PolicyChoice.DEFAULT

    @override
    def check_own(self, own: Own, population: OwnPopulation | None) -> None:
        checks.whole("samples", self.samples, 1, LARGEST_SAMPLES)

    @property
    @override
    def agreement(self) -> PolicyChoice:
        return self.policy

    @override
    def configuration(self) -> dict[str, object]:
        return asdict(self)

    def chosen(self, population: SimulatedPopulation) -> Recordings:
        """Draw the samples, with their true scenes, from recordings that no phone has heard.

        Raises:
            InvalidParametersError: There are not enough such recordings.
        """
        unheard = population.held_out()
        if self.samples > len(unheard.points):
            raise InvalidParametersError(
                f"samples={self.samples}: must be at most {len(unheard.points)}, the number of "
                "recordings that no phone has heard"
            )
        drawn = np.random.default_rng([self.seed, _SAMPLES]).permutation(len(unheard.points))
        kept = drawn[: self.samples]
        return unheard.rows(kept)

    @override
    def any_parameters(self, population: OwnPopulation | None = None) -> LabellingParameters:
        directions = np.ones((self.samples, 2), dtype=np.float32)
        return self._parameters("", ("one label", "another"), Matrix.of(directions))

    @override
    def parameters(self, population: SimulatedPopulation) -> LabellingParameters:
        population.prepare()  # the samples are of its sound
        samples = self.chosen(population)
        points = Matrix.of(samples.points)
        return self._parameters(population.encoder, population.labels, points)

    def _parameters(
        self, encoder: str, labels: tuple[str, ...], samples: Matrix
    ) -> LabellingParameters:
        summation = self.summation.protocol
        return self.vote_parameters(
            self.epsilon, samples, summation, encoder=encoder, labels=labels
        )

    @override
    def found(self, population: SimulatedPopulation, course: Course) -> LabelFindings:
        samples, parameters = self.chosen(population), self.parameters(population)
        answers = LabelFindings(parameters=parameters, truth=tuple(samples.scenes.tolist()))
        if course.coordinator.step != PUBLISHED:
            return answers
        published = course.coordinator.result()
        if not isinstance(published, Labelled):
            raise WrongStateError(f"a labelling phase published a {type(published).__name__}")
        scores = score(published, samples, population)
        return LabelFindings(
            parameters=parameters, truth=answers.truth, published=published, scores=scores
        )


# The command line reads the constructor, whose inherited annotations are strings of other modules.
LabellingSettings.__init__.__annotations__.update(kinds(LabellingSettings))
