"""What a server asks of a phone in a phase, and what the phone puts into a secure sum of it."""

from __future__ import annotations

import msgspec
import numpy as np

from earshot_client.phone import Phone
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.phases.discovery import DiscoveryParameters, SumCells, cells
from earshot_protocol.phases.labelling import VOTES, LabellingParameters, LabelSamples
from earshot_protocol.phases.learning import Cluster, PhaseParameters
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.plan import SecureSum, SumPartTask
from earshot_protocol.phases.statistics import HISTOGRAM, CountContacts, StatisticsParameters
from earshot_protocol.secure_sum import encoding
from earshot_protocol.secure_sum.messages import (
    AdvertisedKeys,
    AdvertiseKeys,
    MaskedInput,
    MaskInput,
    ShareKeys,
    Unmask,
)
from earshot_protocol.secure_sum.parameters import SumParameters
from earshot_protocol.wire import Task
from support.parameters import discovery_parameters, labelling_parameters, statistics_parameters

PHASE, OTHER_PHASE = b"the first phase!", b"the second phase"
SUM, OTHER_SUM = b"the first sum!!!", b"the second sum!!"


def numbered(number: int) -> bytes:
    """Return the identifier of a phase that a test knows by its number."""
    return number.to_bytes(16)


def sum_of(parameters: Parameters, part: str, shape: tuple[int, ...]) -> SumParameters:
    """Return the secure sum to which the phase's parameters lead."""
    summed = parameters.plan().part(part)
    assert isinstance(summed, SecureSum)
    return parameters.sum_parameters(summed, shape)


def opening(
    parameters: Parameters, part: str, shape: tuple[int, ...], sum_id: bytes = SUM, index: int = 0
) -> AdvertiseKeys:
    """Return the first task of this part's secure sum."""
    return AdvertiseKeys(sum_id=sum_id, index=index, parameters=sum_of(parameters, part, shape))


def first_task(
    parameters: Parameters, phase: bytes = PHASE, index: int = 0, sum_id: bytes = SUM
) -> Task:
    """Return the first task of a phase of any kind.

    Parameters that lead to no secure sum are sent with the usual one: a phone looks at them first.
    """
    try:
        return _first_task(parameters, phase, index, sum_id)
    except InvalidParametersError:
        usual = _first_task(_USUAL[type(parameters)], phase, index, sum_id)
        return msgspec.structs.replace(usual, parameters=parameters)  # type: ignore[call-arg]


_USUAL: dict[type[Parameters], Parameters] = {
    type(usual): usual
    for usual in (discovery_parameters(), labelling_parameters(), statistics_parameters())
}


def _first_task(parameters: Parameters, phase: bytes, index: int, sum_id: bytes) -> Task:
    match parameters:
        case PhaseParameters():
            return Cluster(phase=phase, index=index, parameters=parameters)
        case StatisticsParameters(entries=entries):
            begins = opening(parameters, HISTOGRAM, (entries,), sum_id, index)
            return CountContacts(phase=phase, parameters=parameters, opening=begins)
        case DiscoveryParameters(most_cells=most, dimensions=dimensions):
            begins = opening(parameters, cells(1), (most, dimensions), sum_id, index)
            return SumCells(phase=phase, repetition=1, parameters=parameters, opening=begins)
        case LabellingParameters(samples=samples, labels=labels):
            begins = opening(parameters, VOTES, (samples.rows, len(labels)), sum_id, index)
            return LabelSamples(phase=phase, parameters=parameters, opening=begins)
        case _:
            raise TypeError(type(parameters))


def rounds(sum_id: bytes = SUM) -> tuple[ShareKeys, MaskInput, Unmask]:
    """Return the tasks of an ideal sum after its opening; the second one releases."""
    return (
        ShareKeys(sum_id=sum_id, neighbours=(), public_keys=b""),
        MaskInput(sum_id=sum_id, senders=(), ciphertexts=()),
        Unmask(sum_id=sum_id, survivors=(), dropped=()),
    )


def sent_input(phone: Phone, task: SumPartTask) -> np.ndarray:
    """Play an ideal sum, where inputs travel in the clear; return the phone's with its noise."""
    share, mask, _ = rounds(task.opening.sum_id)
    assert isinstance(phone.answer(task), AdvertisedKeys)
    phone.answer(share)
    answer = phone.answer(mask)
    assert isinstance(answer, MaskedInput)
    agreed = task.opening.parameters
    return encoding.decode(encoding.unpack(answer.vector, agreed), agreed)
