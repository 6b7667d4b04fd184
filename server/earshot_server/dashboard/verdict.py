"""Verdict on a phase, in one line: what its crowd can find, or how large a crowd could.

`earshot phase start`, `earshot budget` and the dashboard show it before a phase starts.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from earshot_protocol.phases.acceptance import Limits
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.privacy.significance import LEVEL
from earshot_server.dashboard.refusals import short
from earshot_server.dashboard.wording import counted, whole
from earshot_server.phases import sitting
from earshot_server.phases.forecast import Refusal, expected, outlook

_LARGEST_CROWD = 10**8
"""Largest crowd that is advised."""


def verdict(parameters: Parameters, refusals: Iterable[Refusal] = ()) -> str:
    """Return in one line what the crowd can find, or how large a crowd could, and refusals.

    The last secure sum decides, since it yields the names, counts or answers.

    Args:
        parameters: Parameters of the phase, which can run.
        refusals: Reasons why a default phone refuses it.
    """
    said = _sight(parameters)
    reasons = "; ".join(short(each.rule) for each in refusals)
    return f"{said}; default phones refuse the phase ({reasons})" if reasons else said


def _sight(parameters: Parameters) -> str:
    part = _deciding(parameters)
    inputs, seen = expected(parameters, part.name), outlook(parameters, part)
    crowd = counted(parameters.phones, "phone")
    if inputs is None or seen is None:
        return f"what {crowd} can find here is not known"
    if seen.clear:
        places = counted(seen.environments, inputs.place)
        every = seen.clear >= seen.environments
        complete = f"the one {inputs.place}" if seen.environments == 1 else f"all {places}"
        many = complete if every else f"up to {seen.clear} of {places}"
        return f"{crowd} can {inputs.verb} {many} here"
    most = round(parameters.phones * inputs.most * inputs.unit)
    never = inputs.hurdle.chance(part.mechanism.noise(parameters.phones), most) <= LEVEL
    can = "cannot" if never else "can hardly"
    larger = _crowd(parameters)
    advice = f"about {whole(larger)} would" if larger else "nor would a larger crowd"
    return f"{crowd} {can} {inputs.verb} anything here; {advice}"


def _deciding(parameters: Parameters) -> SecureSum:
    return [each for each in parameters.plan().parts if isinstance(each, SecureSum)][-1]


def _crowd(parameters: Parameters) -> int | None:
    """Return the size of a crowd that finds something, rounded up; None if no crowd does.

    It is at least the smallest crowd that default phones join, except for a sitting.
    """

    def finds(phones: int) -> bool:
        larger = msgspec.structs.replace(parameters, phones=phones)
        seen = outlook(larger, _deciding(larger))
        return seen is not None and seen.clear > 0

    most = parameters.phones
    if not sitting.is_seated(parameters):
        most = max(most, Limits().least_phones)
    if finds(most):
        return most
    while not finds(most):
        if most > _LARGEST_CROWD:
            return None
        most *= 2
    least = most // 2
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if finds(middle) else (middle, most)
    step: int = 10 ** max(0, len(str(most)) - 2)
    return -(-most // step) * step
