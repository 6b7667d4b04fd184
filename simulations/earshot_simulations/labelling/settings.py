"""Settings of a simulated labelling phase."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime

import msgspec
import numpy as np

from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.phases import labelling_budget
from earshot_protocol.phases.labelling import LARGEST_SAMPLES, LabellingParameters
from earshot_protocol.privacy.ledger import Ledger
from earshot_protocol.wire import Matrix
from earshot_server.phases.labelling import usual_threshold
from earshot_simulations.engine.processes import check_processes
from earshot_simulations.phases import routes
from earshot_simulations.phases.settings import BLOBS, MOST_PHONES, POLICIES, Agreement, Summation
from earshot_simulations.populations import Heterogeneity, Population, Recordings

_SAMPLES = 0xD
"""Number of the generator, under a seed, that chooses samples."""


@dataclass(frozen=True)
class Settings:
    """The settings of one simulated labelling phase, named like the command's options.

    Attributes:
        phones: Phones that take part.
        recordings: Recordings of a phone, on average.
        scenes: Scenes of generated data.
        data: Recordings that phones hear: blobs, soundscapes, or a folder of class/*.wav|ogg|flac.
        labelled: Fraction of recordings that carry a label.
        heterogeneity: How phones differ.
        samples: Recordings to label, none of which a phone has heard (B).
        epsilon: ε of the phase, for a phone of weight 1.
        delta: δ of the phase.
        check_share: Share of ε (in ρ of zero-concentrated privacy) for asking who agrees.
        threshold: Phones that must agree on an answer (T); by default more than noise alone
            reaches.
        largest_weight: Most votes that one phone may cast per sample (W).
        dropout: Fraction of phones that vanish during the phase (ρ).
        corrupted: Fraction of corrupted phones that noise and graph are made for (γ).
        policy: Policy that phones agree to.
        summation: Summation of votes: real, or ideal, which replaces the cryptography and nothing
            else.
        jobs: Processes of this machine.
        seed: Seed for everything except keys.
    """

    phones: int = 1000
    recordings: int = 20
    scenes: int = 10
    data: str = BLOBS
    labelled: float = 0.3
    heterogeneity: Heterogeneity = field(default_factory=Heterogeneity)
    samples: int = 100
    epsilon: float = labelling_budget.EPSILON
    delta: float = labelling_budget.DELTA
    check_share: float = labelling_budget.CHECK_SHARE
    threshold: float | None = None
    largest_weight: int = 1
    dropout: float = 0.05
    corrupted: float = 0.05
    policy: Agreement = Agreement.DEFAULT
    summation: Summation = Summation.REAL
    jobs: int = field(default_factory=lambda: os.cpu_count() or 1)
    seed: int = 0

    def check(self) -> None:
        """Refuse settings that cannot be simulated, before any work.

        Raises:
            InvalidParametersError: if a setting is wrong; the message says which and what is
                accepted.
        """
        checks.whole("samples", self.samples, 1, LARGEST_SAMPLES)
        checks.whole("recordings", self.recordings)
        checks.whole("scenes", self.scenes, 2)
        checks.whole("phones", self.phones, 3, MOST_PHONES)
        checks.share("labelled", self.labelled)
        checks.whole("seed", self.seed, 0)
        check_processes("jobs", self.jobs)
        directions = np.ones((self.samples, 2), dtype=np.float32)
        parameters = self._parameters("", ("one label", "another"), Matrix.of(directions))
        parameters.check_feasible()
        today = datetime.now(UTC).date()
        policy = POLICIES[self.policy]
        refused = tuple(map(str, policy.refusals_of_phase(parameters, Ledger(), today)))
        if refused:
            raise InvalidParametersError(
                f"no phone would take part, with --policy {self.policy}: {'; '.join(refused)} "
                f"(--policy {Agreement.ANYTHING} simulates phones that agree to anything)"
            )

    @property
    def heard(self) -> routes.Settings:
        """Settings of the phones' recordings, for a learning phase."""
        return routes.Settings(
            phones=self.phones,
            recordings=self.recordings,
            scenes=self.scenes,
            data=self.data,
            labelled=self.labelled,
            heterogeneity=self.heterogeneity,
            seed=self.seed,
            jobs=self.jobs,
        )

    def chosen(self, population: Population) -> Recordings:
        """Draw the samples from recordings that no phone has heard, with the truth of each.

        Raises:
            InvalidParametersError: if there are not enough.
        """
        unheard = population.held_out()
        if self.samples > len(unheard.points):
            raise InvalidParametersError(
                f"samples={self.samples}: must be at most {len(unheard.points)}, the number of "
                "recordings that no phone has heard"
            )
        drawn = np.random.default_rng([self.seed, _SAMPLES]).permutation(len(unheard.points))
        kept = drawn[: self.samples]
        return Recordings(unheard.points[kept], unheard.labels[kept], unheard.scenes[kept])

    def parameters(self, population: Population, samples: Recordings) -> LabellingParameters:
        """Return the parameters of the phase in which these samples are labelled."""
        points = Matrix.of(samples.points)
        return self._parameters(population.encoder, population.labels, points)

    def _parameters(
        self, encoder: str, labels: tuple[str, ...], samples: Matrix
    ) -> LabellingParameters:
        noise = labelling_budget.noises(
            self.epsilon, self.delta, samples=samples.rows, check_share=self.check_share
        )
        parameters = LabellingParameters(
            phones=self.phones,
            labels=labels,
            encoder=encoder,
            samples=samples,
            votes_noise=noise.votes,
            check_noise=noise.check,
            threshold=1.0 if self.threshold is None else self.threshold,
            largest_weight=self.largest_weight,
            delta=self.delta,
            dropout=self.dropout,
            corrupted=self.corrupted,
        )
        if self.threshold is not None:
            return parameters
        return msgspec.structs.replace(parameters, threshold=usual_threshold(parameters))
