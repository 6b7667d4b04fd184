"""What a phone puts into a private mean: how many recordings it has."""

from __future__ import annotations

import numpy as np

from earshot_client.phases.kind import Input, PhoneKind
from earshot_client.phases.memory import Memory
from mean_phase import shared


def number(memory: Memory, parameters: shared.MeanParameters, task: shared.AskNumber) -> Input:
    _, choices = memory.store.recordings()
    return np.array([min(len(choices), parameters.largest)], dtype=np.int64)


MEAN = PhoneKind(
    kind=shared.MEAN,
    contribute={shared.AskNumber: number},
    describe=lambda published: {"mean": published.mean},
)
