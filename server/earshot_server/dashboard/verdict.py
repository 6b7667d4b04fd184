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
from earshot_server.dashboard.languages import gettext as _
from earshot_server.dashboard.languages import gettext_among, noted
from earshot_server.dashboard.refusals import short
from earshot_server.dashboard.wording import counted, whole
from earshot_server.phases import sitting
from earshot_server.phases.forecast import Refusal, expected, outlook

_LARGEST_CROWD = 10**8
"""Largest crowd that is advised."""
_FINDINGS = frozenset(
    (
        *(noted("the one environment"), noted("the one label"), noted("the one sample")),
        *(noted("all %(number)s environments"), noted("all %(number)s labels")),
        noted("all %(number)s samples"),
        noted("up to %(clear)s of %(number)s environments"),
        noted("up to %(clear)s of %(number)s labels"),
        noted("up to %(clear)s of %(number)s samples"),
        *(noted("%(crowd)s can name %(many)s here"), noted("%(crowd)s can learn %(many)s here")),
        *(noted("%(crowd)s can label %(many)s here"), noted("%(crowd)s can count %(many)s here")),
        noted("%(crowd)s can hardly name anything here; %(advice)s"),
        noted("%(crowd)s can hardly learn anything here; %(advice)s"),
        noted("%(crowd)s can hardly label anything here; %(advice)s"),
        noted("%(crowd)s can hardly count anything here; %(advice)s"),
        noted("%(crowd)s cannot name anything here; %(advice)s"),
        noted("%(crowd)s cannot learn anything here; %(advice)s"),
        noted("%(crowd)s cannot label anything here; %(advice)s"),
        noted("%(crowd)s cannot count anything here; %(advice)s"),
    )
)
"""Texts with the words of `Expected`: what a place is called, and what phones do with it."""


def verdict(parameters: Parameters, refusals: Iterable[Refusal] = ()) -> str:
    """Return in one line what the crowd can find, or how large a crowd could, and refusals.

    The last secure sum decides, since it yields the names, counts or answers.

    Args:
        parameters: Parameters of the phase, which can run.
        refusals: Reasons why a default phone refuses it.
    """
    said = _sight(parameters)
    reasons = "; ".join(short(each.rule) for each in refusals)
    if not reasons:
        return said
    return _("%(said)s; default phones refuse the phase (%(reasons)s)", said=said, reasons=reasons)


def _sight(parameters: Parameters) -> str:
    part = _deciding(parameters)
    inputs, seen = expected(parameters, part.name), outlook(parameters, part)
    crowd = counted(parameters.phones, "phone")
    if inputs is None or seen is None:
        return _("what %(crowd)s can find here is not known", crowd=crowd)
    if seen.clear:
        text = f"all %(number)s {inputs.place}s"
        if seen.clear < seen.environments:
            text = f"up to %(clear)s of %(number)s {inputs.place}s"
        elif seen.environments == 1:
            text = f"the one {inputs.place}"
        number = whole(seen.environments)
        many = gettext_among(_FINDINGS, text, clear=seen.clear, number=number)
        text = f"%(crowd)s can {inputs.verb} %(many)s here"
        return gettext_among(_FINDINGS, text, crowd=crowd, many=many)
    most = round(parameters.phones * inputs.most * inputs.unit)
    never = inputs.hurdle.chance(part.mechanism.noise(parameters.phones), most) <= LEVEL
    larger = _crowd(parameters)
    advice = _("nor would a larger crowd")
    if larger:
        advice = _("about %(number)s would", number=whole(larger))
    text = (
        f"%(crowd)s {'cannot' if never else 'can hardly'} {inputs.verb} anything here; %(advice)s"
    )
    return gettext_among(_FINDINGS, text, crowd=crowd, advice=advice)


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
