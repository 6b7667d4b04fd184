"""The report on a trained generator: its data, its privacy cost, and the worth of its samples."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from earshot_models.generators.origin import Origin

from earshot_simulations.generation.frechet import Fidelity
from earshot_simulations.generation.kinds import TrainingKind
from earshot_simulations.generation.result import NOISE
from earshot_simulations.generation.run import TrainedGenerator

_LITTLE = 0.01
"""Largest δ that still protects anyone."""
_PUBLIC = (
    "The number of clips, the settings of the training and the scale of spectrograms are public: "
    "none of them was chosen by looking at the clips."
)
_TRUST = (
    "The figures rest on trust in whoever ran this training: nothing in the generator's file "
    "proves them."
)
_HOW = {
    TrainingKind.AAE: (
        "An adversarial autoencoder (Makhzani et al. 2015), as in Yang et al. (Interspeech 2021): "
        "the decoder fits the clips themselves."
    ),
    TrainingKind.AAE_PRIVATE: (
        "An adversarial autoencoder trained by DP-SGD (Abadi et al., CCS 2016): in each step every "
        "clip is in the batch by chance (Poisson sampling), its gradient is clipped, and noise is "
        "added to the sum. The decoder is computed from these sums alone."
    ),
    TrainingKind.DP_GAN: (
        "A generator and a critic (Xie et al. 2018); the critic alone meets the clips, by DP-SGD "
        "(Abadi et al., CCS 2016), and the generator meets the critic."
    ),
    TrainingKind.PATE_GAN: (
        "A generator and a student critic (Jordon et al., ICLR 2019). Teachers on disjoint parts "
        "of the clips vote which samples are real; the student learns the noisy winners, and the "
        "generator meets the student alone."
    ),
}
_THERE = "Unit: one clip, present or absent. A clip exchanged for another counts as two of these."
_UNITS = {
    TrainingKind.AAE_PRIVATE: _THERE,
    TrainingKind.DP_GAN: _THERE,
    TrainingKind.PATE_GAN: (
        "Unit: one clip that is exchanged for another, which may change all votes of one teacher, "
        "two counts of every query by one each (Δ² = 2)."
    ),
}


def report(trained: TrainedGenerator, found: Fidelity | None, why: str) -> str:
    """Format the report as Markdown."""
    request, origin = trained.request, trained.generator.origin
    learned = "sensitive" if trained.sensitive else "public"
    lines = [
        "# A generator of sound",
        "",
        f"**{origin.text[0].upper()}{origin.text[1:]}.**",
        "",
        f"{_HOW[request.kind]} It learned from {trained.clips} {learned} clips, the loudest second "
        f"of each, in {request.size.steps} steps of {request.size.batch}.",
        "",
        "## Who saw what",
        "",
        *_seen(trained),
        *_started(trained),
        "",
        "## What it costs",
        "",
        *_cost(trained),
        "",
        "## What samples are worth",
        "",
        NOISE,
        "",
        _distance(found, why),
        "",
    ]
    return "\n".join(lines)


def _seen(trained: TrainedGenerator) -> list[str]:
    if not trained.sensitive:
        return ["Only public sound was read, so anyone may have the generator and its samples."]
    lines = [
        "- The clips were read on this machine; neither they nor their spectrograms are in any "
        "file of this folder.",
    ]
    if trained.noise is None:
        return [
            *lines,
            "- The generator's weights and samples depend on every clip, without noise: **whoever "
            "has them may find out what was in the clips. Treat both as you treat the clips.**",
        ]
    return [
        *lines,
        "- While the training ran, its folder `work` held weights and the secret of its noise, "
        "which are as sensitive as the clips; it has been deleted.",
        "- The generator's file and its samples may be published at the price below.",
        f"- {_PUBLIC}",
    ]


def _started(trained: TrainedGenerator) -> list[str]:
    if trained.noise is None or trained.public is None:
        return []
    return [
        f"- The training started with networks that learned {len(trained.public)} public clips, "
        "and kept using these beside the others, the more the more noise there is. That costs "
        "nothing, and samples may repeat public sound.",
    ]


def _cost(trained: TrainedGenerator) -> list[str]:
    origin, request = trained.generator.origin, trained.request
    if not trained.sensitive:
        return ["Nothing: no sensitive clip was used."]
    if trained.noise is None:
        return ["There is no ε: no noise was added."]
    counted = (
        "all answers composed, by the library dp-accounting"
        if request.kind is TrainingKind.PATE_GAN
        else "all steps composed as Poisson-sampled Gaussian noise, by the privacy loss "
        "distributions of the library dp-accounting"
    )
    return [
        f"ε = {origin.epsilon:g} at δ = {origin.delta:g}: {counted}. {_UNITS[request.kind]}",
        "",
        trained.noise.words,
        "",
        f"{_several(origin)} {_TRUST}",
    ]


def _several(origin: Origin) -> str:
    """Explain a budget's worth for a person with several clips, by the group's ε and δ.

    k clips have k·ε at (e^(kε) − 1)/(e^ε − 1)·δ (Vadhan, The Complexity of Differential Privacy,
    2017, Lemma 2.2).
    """
    epsilon, delta = origin.epsilon or 0.0, origin.delta or 0.0
    two = math.exp(min(0.0, math.log(delta) + float(np.logaddexp(0.0, epsilon))))
    worth = " – that is, nothing is promised" if two > _LITTLE else ""
    return (
        "The protected unit is a clip, not a person. Two clips of one person have "
        f"ε = {2 * epsilon:g} at δ = {two:.2g}{worth}; more clips are protected still less. "
        "Another training on the same clips costs as much again."
    )


def _distance(found: Fidelity | None, why: str) -> str:
    if found is None:
        return why
    return (
        f"Fréchet distance of samples from public sound: {found.generated}; of public sound from "
        f"public sound: {found.real} (sets of {found.size}, {found.dimensions} dimensions; "
        f"intervals over random halves of the same clips). {why[0].upper()}{why[1:]}. Generated "
        "sound of sensitive clips need not be near public sound: a distance says that it is "
        "different, not that it is worse."
    )
