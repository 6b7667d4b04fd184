"""What Muschiol (2021) prints of privacy: Table 5.4, and which formula its columns come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from earshot_server.accounting.votes.muschiol import Rule, independent
from earshot_studies.kit.outcome import Row

ADAPTIVE = "adaptive"
ANSWERED = (2000, 5000)
"""Samples that its students learn from."""


class Printed(NamedTuple):
    """One row of Table 5.4.

    Attributes:
        dependent, independent: ε by the votes and by the noise.
        q: mean probability of another answer.
    """

    dependent: float
    independent: float
    q: float


Setting = tuple[str, str]
"""th_e and th_c as the table has them; no check is an empty th_c."""

TABLE_5_4: Mapping[int, Mapping[Setting, Printed]] = {
    2000: {
        ("0.2", ""): Printed(418.4, 418.4, 0.747),
        ("0.2", "0.4"): Printed(479.5, 522.1, 0.759),
        ("0.2", "0.6"): Printed(481.1, 568.2, 0.770),
        ("0.4", ""): Printed(268.4, 418.4, 0.156),
        ("0.4", "0.4"): Printed(371.4, 524.4, 0.193),
        ("0.4", "0.6"): Printed(347.4, 566.6, 0.164),
        (ADAPTIVE, ""): Printed(269.9, 418.4, 0.396),
        (ADAPTIVE, "0.4"): Printed(248.5, 523.5, 0.132),
        (ADAPTIVE, "0.6"): Printed(180.2, 567.6, 0.034),
    },
    5000: {
        ("0.2", ""): Printed(1018.4, 1018.4, 0.748),
        ("0.2", "0.4"): Printed(1167.6, 1277.7, 0.760),
        ("0.2", "0.6"): Printed(1169.6, 1384.2, 0.768),
        ("0.4", ""): Printed(631.2, 1018.4, 0.148),
        ("0.4", "0.4"): Printed(880.4, 1277.8, 0.189),
        ("0.4", "0.6"): Printed(839.1, 1382.5, 0.166),
        (ADAPTIVE, ""): Printed(632.3, 1018.4, 0.386),
        (ADAPTIVE, "0.4"): Printed(577.1, 1276.9, 0.134),
        (ADAPTIVE, "0.6"): Printed(413.5, 1381.2, 0.038),
    },
}

PASSED = {"0.4": 0.60, "0.6": 0.44}
"""Share of all samples that is answered by 50 teachers, by th_c (Table 5.3, without noise)."""


def rule(setting: Setting, noise: float = 0.3, check_noise: float = 0.6) -> Rule:
    """A setting with its noise."""
    threshold, check = setting
    return Rule(
        None if threshold == ADAPTIVE else float(threshold),
        float(check) if check else None,
        noise,
        check_noise,
    )


def fits() -> list[Row]:
    """Which share of samples must have been answered for the data-independent column to hold.

    By each formula for the check, at λ = 2, the end of the orders: a share that is the same for
    2,000 and 5,000 answers, and near that of Table 5.3, speaks for it. "λ/2σ_c² asked" charges each
    sample that is checked for one noise; "3λ/2σ_c² unanswered" charges only those that fail, for
    three, as 4.2.4 has it; "3λ/2σ_c² asked" would charge all for three.
    """
    found: list[Row] = []
    for answered, table in TABLE_5_4.items():
        for setting, printed in table.items():
            own = rule(setting)
            computed = independent(own._replace(check=None), answered, answered)
            row: Row = {
                "answered": answered,
                "th_e": setting[0],
                "th_c": setting[1],
                "printed": printed.independent,
                "without_check": round(computed, 1),
            }
            shares: Row = dict.fromkeys(_FORMULAS, "")
            if setting[1]:
                one = 1 / own.check_sigma**2  # λ/2σ_c² at λ = 2
                extra = (printed.independent - computed) / one
                shares = {
                    _FORMULAS[0]: answered / extra,
                    _FORMULAS[1]: answered / (answered + extra / 3),
                    _FORMULAS[2]: answered / (extra / 3),
                }
            passed = PASSED.get(setting[1], "")
            found.append(row | shares | {"table_5_3": passed})
    return found


_FORMULAS = ("λ/2σ_c² asked", "3λ/2σ_c² unanswered", "3λ/2σ_c² asked")
