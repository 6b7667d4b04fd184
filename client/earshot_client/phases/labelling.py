"""A phone's part in a labelling phase: its votes on public samples, and its agreement.

`earshot_client.phone` applies the weight.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from earshot_client.phases import centroids as shared
from earshot_client.phases.kind import Input, PhoneKind
from earshot_client.phases.memory import Memory
from earshot_client.voters import NearestRecordings, Voter, asked
from earshot_protocol.errors import RefusedError
from earshot_protocol.phases import labelling
from earshot_protocol.phases.labelling import (
    CheckLabels,
    Labelled,
    LabellingParameters,
    LabelSamples,
)
from earshot_protocol.voting.teacher_ballots import NONE, Agreement, OneHot


def _votes(memory: Memory, parameters: LabellingParameters, task: LabelSamples) -> Input:
    """Return one-hot votes on the samples; a row of zeros abstains."""
    return OneHot(len(parameters.labels)).cast(_answers(memory, parameters))


def _agreement(memory: Memory, parameters: LabellingParameters, task: CheckLabels) -> Input:
    """Return 1 for each sample that this phone would label as proposed, else 0."""
    proposed = np.array(task.proposed, dtype=np.int64)
    if len(proposed) != parameters.samples.rows or (proposed >= len(parameters.labels)).any():
        raise RefusedError(
            f"{len(proposed)} labels are proposed, up to number {proposed.max(initial=0)}; this "
            f"phase has {parameters.samples.rows} samples and {len(parameters.labels)} labels"
        )
    return Agreement().cast(_answers(memory, parameters) == proposed)


def _answers(memory: Memory, parameters: LabellingParameters) -> npt.NDArray[np.int64]:
    """Return the label of each sample, int64 (samples,); `NONE` if the voter abstains."""
    answers = asked(_voter(memory, parameters), parameters.samples.array())
    names = parameters.labels
    return np.array(
        [names.index(name) if name in names else NONE for name in memory.classes_of(answers)],
        dtype=np.int64,
    )


def _voter(memory: Memory, parameters: LabellingParameters) -> Voter:
    """Return the app's model; without one, the recordings whose label the phase knows."""
    if memory.voter is not None:
        return memory.voter
    points, choices = memory.points(parameters.dimensions)
    return NearestRecordings.of(points, memory.classes_of(choices))


def _keep(memory: Memory, result: Labelled) -> None:
    """Keep the samples beside the result, whose unnamed centroids they may name."""
    if shared.compares(memory, result):
        memory.keep_labelled(result)


def _shortfall(memory: Memory) -> str:
    """Describe missing votes: the model or the recordings may know none of the phase's labels."""
    if memory.voter is None:
        return memory.shortfall()
    classes = tuple(memory.voter.classes)
    if any(memory.classes_of(classes)):
        return ""
    return (
        f"takes part without votes: its model knows {', '.join(classes) or 'no class'}; the phase "
        f"asks for {', '.join(memory.agreed.classes)}"
    )


def _describe(result: Labelled) -> dict[str, Any]:
    """Return the samples in plain types: the answers, and which of them may be noise."""
    answers = [result.label_names[label] if label >= 0 else None for label in result.labels]
    return {
        "answers": answers,
        "noise": [
            sample
            for sample, (answer, name) in enumerate(zip(answers, result.names, strict=True))
            if answer != name
        ],
    }


LABELLING = PhoneKind(
    kind=labelling.LABELLING,
    contribute={LabelSamples: _votes, CheckLabels: _agreement},
    describe=_describe,
    check=shared.check_encoder,
    finish=_keep,
    shortfall=_shortfall,
)
