"""Privacy of votes against thresholds: Table 5.4 and Figures 5.13 to 5.16 of Muschiol (2021)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earshot_models.votes.costs import muschiol
from earshot_models.votes.costs.costs import Method, epsilon
from earshot_models.votes.costs.muschiol import PrintedRule, independent
from earshot_models.votes.rules.against_thresholds import ThresholdRule, largest_outputs
from earshot_models.votes.rules.gnthreshold import GNThresholdRule
from earshot_models.votes.rules.gnthreshold_adaptive import AdaptiveRule
from earshot_models.votes.rules.grid_threshold import GridRule
from earshot_protocol import checks
from earshot_protocol.arrays import Numbers
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.progress import Progress, silent
from earshot_protocol.voting.teacher_ballots import NONE
from earshot_simulations.reporting.panels import plain_logarithmic
from earshot_simulations.reporting.tables import markdown_table
from earshot_simulations.sweeps.estimate import Estimate, estimate
from earshot_studies.kit.claims import Claim, verdicts
from earshot_studies.kit.kept import Kept
from earshot_studies.kit.outcome import Reproduction, Row, means, with_interval
from earshot_studies.kit.pictures import curve, multiples
from earshot_studies.kit.printed import printed_figures
from earshot_studies.muschiol.claims import adaptive_threshold
from earshot_studies.muschiol.taggers.ensembles import prepared
from earshot_studies.muschiol.taggers.powers import contents
from earshot_studies.muschiol.taggers.school import LearnerKind, Teaching
from earshot_studies.muschiol.taggers.study import TaggerStudy, TaggerStudySize
from earshot_studies.muschiol.tagging.metrics import scores

ADAPTIVE = "adaptive"
ANSWERED = (2000, 5000)
"""Numbers of samples that Muschiol's students learn from."""


class Printed(NamedTuple):
    """One row of Table 5.4.

    Attributes:
        dependent, independent: Cost ε by the votes and by the noise.
        q: Mean probability of another answer.
    """

    dependent: float
    independent: float
    q: float


Setting = tuple[str, str]
"""Thresholds th_e and th_c as the table has them; no check is an empty th_c."""

_PRINTED = printed_figures(__package__)
TABLE_5_4: Mapping[int, Mapping[Setting, Printed]] = {
    samples: {
        (threshold, check): Printed(dependent, independent, q)
        for own, threshold, check, dependent, independent, q, *_ in _PRINTED["table_5_4"]
        if own == samples
    }
    for samples in ANSWERED
}

PASSED: Mapping[str, float] = {
    check: share for teachers, check, share in _PRINTED["passed_5_3"] if teachers == 50
}
"""Share of all samples that is answered by 50 teachers, by th_c (Table 5.3, without noise)."""


def rule(setting: Setting, noise: float = 0.3, check_noise: float = 0.6) -> PrintedRule:
    """Return a setting with its noise."""
    threshold, check = setting
    return PrintedRule(
        None if threshold == ADAPTIVE else float(threshold),
        float(check) if check else None,
        noise,
        check_noise,
    )


def fits() -> list[Row]:
    """Compute the share of samples that must be answered for the data-independent column to hold.

    Shares are by each formula for the check, at λ = 2, the smallest of the orders: a share that is
    the same for 2,000 and 5,000 answers, and near that of Table 5.3, supports its formula.
    "λ/2σ_c² asked" charges each sample that is checked for one noise; "3λ/2σ_c² unanswered" charges
    only those that fail, for three, as 4.2.4 has it; "3λ/2σ_c² asked" would charge all for three.
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


GRID = "grid"
"""Value of th_e for a threshold of a public grid, chosen by Gumbel noise."""
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
"""Thresholds of that grid, as shares of the teachers."""
GUMBEL = 5.0
"""Scale of the Gumbel noise, g, in votes."""
MOST = 3
"""Number v of a teacher's largest outputs, which alone count in sound rules."""
NOISES = (0.1, 0.2, 0.3, 0.4, 0.5)
"""Noises σ_e of Figures 5.13 to 5.15."""
CHECK_NOISES = (0.2, 0.4, 0.6)
"""Noises σ_c of Figures 5.14 and 5.15: the text has no numbers but 'doubled or tripled'."""
QUERIES = 1000
"""Number of answers in the figures."""
PUBLIC = (*TABLE_5_4[2000], ("0.6", ""), ("0.6", "0.6"), (GRID, ""), (GRID, "0.6"))
"""Settings of the table, .6 from Figure 5.13 and our grid, each with and without a check."""
ORDERS = np.concatenate([1 + np.geomspace(0.02, 1, 15), np.geomspace(2.2, 40, 15)])
BUCKETS = np.geomspace(1e-4, 1, 17)
"""Edges of the buckets of q in Figure 5.16."""


@dataclass(frozen=True)
class SampleVotes:
    """The votes of teachers on the queries.

    Attributes:
        votes: Sums of their probabilities, (queries, labels).
        cut: Sums of each teacher's `MOST` largest alone, (queries, labels).
        truth: True labels, 0 or 1, (queries, labels).
        teachers: Number of teachers, M.
    """

    votes: Numbers
    cut: Numbers
    truth: NDArray[np.int8]
    teachers: int

    @classmethod
    def of(cls, probabilities: NDArray[np.floating], truth: NDArray[np.int8]) -> SampleVotes:
        """Add up the teachers' outputs, (teachers, queries, labels) in [0, 1]."""
        cut = np.zeros(probabilities.shape[1:])
        for each in probabilities:
            cut += largest_outputs(each.astype(np.float64), MOST)
        whole = probabilities.sum(axis=0, dtype=np.float64)
        teachers = len(probabilities)
        return cls(np.minimum(whole, teachers), np.minimum(cut, teachers), truth, teachers)


class MeanDivergences(NamedTuple):
    """The mean divergences of one query.

    Attributes:
        asked: Divergences of its check, (orders,).
        answered: Divergences of its answer, (orders,).
    """

    asked: Numbers
    answered: Numbers

    def of(self, answers: int, passed: float) -> Numbers:
        """Return the divergences of this many answers, where a share `passed` is answered."""
        return answers * (self.answered + self.asked / passed)


def measure(
    ensemble: SampleVotes, seed: int, progress: Callable[[str], None] = lambda what: None
) -> Iterator[Row]:
    """Measure every setting of Table 5.4 and of Figures 5.13 to 5.16 on one ensemble.

    Args:
        ensemble: Votes of 50 teachers, as Muschiol has them.
        seed: Seed of the noise.
        progress: Callback that receives the name of the next setting.
    """
    for setting in PUBLIC:
        progress(" + ".join(filter(None, setting)))
        yield table_row(ensemble, setting, seed)
    for noise in NOISES:
        progress(f"σ_e = {noise:g}")
        for threshold in ("0.2", "0.4", "0.6", ADAPTIVE):
            yield figure_row("5.13", ensemble, (threshold, ""), noise, 0.6, seed)
        for check_noise in CHECK_NOISES:
            for table, threshold in (("5.14", "0.4"), ("5.15", ADAPTIVE)):
                yield figure_row(table, ensemble, (threshold, "0.6"), noise, check_noise, seed)
    for threshold in ("0.4", ADAPTIVE):
        yield from distribution(ensemble, threshold, seed)


def table_row(ensemble: SampleVotes, setting: Setting, seed: int) -> Row:
    """Return one row of Table 5.4: costs by Muschiol's accounting, and sound ones."""
    row = figure_row("5.4", ensemble, setting, 0.3, 0.6, seed, ANSWERED[0], False)
    if setting[0] != GRID:
        longer = _claimed(ensemble, setting, 0.3, 0.6, seed, ANSWERED[1])
        row |= {f"{name}_5000": longer[name] for name in ("claimed", "claimed_independent")}
    return row | sound(ensemble, setting, 0.3, 0.6, seed, ANSWERED[0], everything=True)


def figure_row(
    table: str,
    ensemble: SampleVotes,
    setting: Setting,
    noise: float,
    check_noise: float,
    seed: int,
    answers: int = QUERIES,
    soundly: bool = True,
) -> Row:
    """Return one point of a figure."""
    row: Row = {
        "table": table,
        "th_e": setting[0],
        "th_c": setting[1],
        "sigma_e": noise,
        "sigma_c": check_noise if setting[1] else "",
        "answers": answers,
        "seed": seed,
    }
    if setting[0] != GRID:
        row |= _claimed(ensemble, setting, noise, check_noise, seed, answers)
    if soundly:
        row |= sound(ensemble, setting, noise, check_noise, seed, answers)
    return row


def _claimed(
    ensemble: SampleVotes,
    setting: Setting,
    noise: float,
    check_noise: float,
    seed: int,
    answers: int,
) -> Row:
    """Compute costs as Muschiol does, with the published rule and all outputs of the teachers."""
    own = rule(setting, noise, check_noise)._replace(teachers=ensemble.teachers)
    generator = np.random.default_rng([seed, 0])
    passed = np.ones(len(ensemble.votes), dtype=np.bool_)
    if own.check is not None:
        checked = own.check_sigma * generator.standard_normal(len(passed))
        passed = ensemble.votes.max(axis=1) + checked >= own.check * own.teachers
    share = float(passed.mean())
    cost = MeanDivergences(
        muschiol.claimed_checks(own, ensemble.votes).mean(axis=0),
        muschiol.claimed_answers(own, ensemble.votes[passed]).mean(axis=0),
    )
    asked = round(answers / share)
    noisy = ensemble.votes + own.sigma * generator.standard_normal(ensemble.votes.shape)
    named = noisy > own.thresholds(ensemble.votes)[:, None]
    return {
        "answered_share": share,
        "claimed": _as_printed(cost.of(answers, share)),
        "claimed_asked": _as_printed(cost.of(round(answers * share), share)),
        "claimed_independent": muschiol.independent(own, asked, answers),
        "q": float(np.exp(own.log_q(ensemble.votes[passed])).mean()),
        **_right("printed", ensemble.truth[passed], named[passed]),
    }


def _as_printed(divergences: Numbers) -> float:
    return epsilon(divergences, muschiol.ORDERS, muschiol.DELTA, classic=True)[0]


def voting(setting: Setting, noise: float, check_noise: float, teachers: int) -> ThresholdRule:
    """Return the sound rule of a setting: noise is added before a gap is searched."""
    threshold, check = setting
    sigma = muschiol.deviation(noise, teachers)
    options: dict[str, Any] = {"sigma": sigma, "winners": MOST}
    if check:
        options["threshold"] = float(check) * teachers
        options["check_sigma"] = muschiol.deviation(check_noise, teachers)
    match threshold:
        case "adaptive":
            return AdaptiveRule(**options)
        case "grid":
            grid = tuple(share * teachers for share in SHARES)
            return GridRule(grid=grid, scale=GUMBEL, **options)
    return GNThresholdRule(cut=float(threshold) * teachers, **options)


def sound(
    ensemble: SampleVotes,
    setting: Setting,
    noise: float,
    check_noise: float,
    seed: int,
    answers: int,
    everything: bool = False,
) -> Row:
    """Compute a sound ε at Muschiol's δ, by the best order, with v outputs of a teacher.

    Args:
        ensemble: Votes of the ensemble.
        setting: Thresholds th_e and th_c.
        noise: Noise σ_e.
        check_noise: Noise σ_c.
        seed: Seed of the noise.
        answers: Number of answers.
        everything: Whether to add ε for a replaced teacher, also with all of its outputs, and
            ε by Theorem 6.
    """
    own = voting(setting, noise, check_noise, ensemble.teachers)
    bytes_of = np.random.default_rng([seed, 1]).bytes
    outcomes = own.outcomes(ensemble.cut, ensemble.teachers, bytes_of)
    passed = outcomes[:, 0] != NONE
    found: Row = {"sound_share": float(passed.mean())}
    found |= _right("sound", ensemble.truth[passed], outcomes[passed] == 1)
    wanted: list[tuple[str, ThresholdRule, Numbers, Unit]] = [
        ("left_out", own, ensemble.cut, Unit.PHONE)
    ]
    if everything:
        free = replace(own, winners=None)
        wanted += [
            ("replaced", own, ensemble.cut, Unit.REPLACED_PHONE),
            ("uncut", free, ensemble.votes, Unit.REPLACED_PHONE),
        ]
    for name, each, votes, unit in wanted:
        for method in Method:
            if method is Method.DEPENDENT and not everything:
                continue
            cost = _sound_cost(each, ensemble.teachers, votes, passed, method, unit)
            spent = cost.of(answers, float(passed.mean()))
            found[f"{name}_{method}"] = epsilon(spent, ORDERS, muschiol.DELTA)[0]
    return found


def _sound_cost(
    own: ThresholdRule,
    teachers: int,
    votes: Numbers,
    passed: NDArray[np.bool_],
    method: Method,
    unit: Unit,
) -> MeanDivergences:
    table = votes[:1] if method is Method.INDEPENDENT else votes
    each = own.divergences(table, teachers, ORDERS, method, unit)
    answered = each.answered if method is Method.INDEPENDENT else each.answered[passed]
    return MeanDivergences(each.asked.mean(axis=0), answered.mean(axis=0))


def distribution(ensemble: SampleVotes, threshold: str, seed: int) -> Iterator[Row]:
    """Yield Figure 5.16: samples by q, σ_e = .4, with and without a check of σ_c = .6 at .6."""
    generator = np.random.default_rng([seed, 2])
    own = rule((threshold, "0.6"), 0.4, 0.6)._replace(teachers=ensemble.teachers)
    q = np.exp(own.log_q(ensemble.votes))
    noisy = ensemble.votes.max(axis=1) + own.check_sigma * generator.standard_normal(len(q))
    passed = noisy >= (own.check or 0.0) * own.teachers
    costs = muschiol.claimed_answers(own, ensemble.votes)
    places = np.clip(np.searchsorted(BUCKETS, q), 1, len(BUCKETS) - 1)
    for place in range(1, len(BUCKETS)):
        there = places == place
        row: Row = {
            "table": "5.16",
            "th_e": threshold,
            "th_c": "",
            "sigma_e": 0.4,
            "sigma_c": 0.6,
            "answers": QUERIES,
            "seed": seed,
            "q": float(BUCKETS[place]),
            "answered_share": float(there.mean()),
            "sound_share": float((there & passed).mean()),
            "claimed": "",
        }
        if there.any():
            row["claimed"] = _as_printed(QUERIES * costs[there].mean(axis=0))
        yield row


def _right(name: str, truth: NDArray[np.int8], named: NDArray[np.bool_]) -> Row:
    found = scores(truth, named)
    return {
        f"macro_f1_{name}": found.macro_f1,
        f"micro_f1_{name}": found.micro_f1,
        f"never_named_{name}": found.never_named,
    }


Rows = Sequence[Row]


class HeldStatement(NamedTuple):
    """A statement of Muschiol, checked by the published accounting and by sound costs.

    Attributes:
        claimed: Claim on a ratio of two ε, or of two F1, by Muschiol's accounting.
        sound: Same claim by exact outcomes of sound rules; None where there are none.
    """

    claimed: Claim
    sound: Claim | None

    @property
    def sound_verdict(self) -> str:
        """Verdict of the sound ratio."""
        return "–" if self.sound is None else self.sound.verdict

    def row(self) -> dict[str, Any]:
        """Return the statement as a row of the note's table."""
        theirs = self.claimed.theirs
        return {
            "statement": self.claimed.said,
            "ratio": self.claimed.what,
            "theirs": "–" if theirs is None else f"{theirs:.2f}",
            "ours, their accounting": _said(self.claimed.ours),
            "verdict": self.claimed.verdict,
            "ours, soundly": "–" if self.sound is None else _said(self.sound.ours),
            "soundly": self.sound_verdict,
            "why": self.why,
        }

    @property
    def why(self) -> str:
        """Reason for the verdicts, in one line."""
        if self.sound is not None and self.sound.verdict != self.claimed.verdict:
            return "soundly it differs: noise comes first, and check and answer compose"
        return self.claimed.why("costs by votes depend on the votes, and ours are of other sound")


def _said(found: Estimate) -> str:
    return f"{found.mean:.2f}" + ("" if found.wide is None else f" ± {found.wide:.2f}")


LESS, MORE = (-math.inf, 1.0), (1.0, math.inf)
SOUND = "left_out_exact"
"""Column of the sound ε: a teacher left out, v = 3, exact outcomes."""


def statements(rows: Rows) -> list[HeldStatement]:
    """Return all statements with our measurements.

    Args:
        rows: Rows of `measure`, of all seeds.
    """
    seeds = sorted({int(row["seed"]) for row in rows})
    each = [_Seed([row for row in rows if row["seed"] == seed]) for seed in seeds]

    def found(
        said: str,
        what: str,
        theirs: float | None,
        expected: tuple[float, float],
        ratio: Callable[[_Seed, str], float],
        claimed: str = "claimed",
        sound: str | None = SOUND,
    ) -> HeldStatement:
        def claim(column: str) -> Claim:
            ours = estimate([ratio(seed, column) for seed in each])
            return Claim(said, what, theirs, ours, expected, expected, "one ensemble")

        return HeldStatement(claim(claimed), None if sound is None else claim(sound))

    listed = [
        found(
            "At th .2 the votes save nothing",
            "by votes / by noise, .2",
            1.0,
            (0.98, 1.0 + 1e-9),
            lambda seed, name: seed.table("0.2", "", name) / seed.table("0.2", "", _NOISE[name]),
        )
    ]
    for threshold, check, theirs in (
        ("0.2", "0.4", 479.5 / 418.4),
        ("0.2", "0.6", 481.1 / 418.4),
        ("0.4", "0.4", 371.4 / 268.4),
        ("0.4", "0.6", 347.4 / 268.4),
    ):
        listed.append(
            found(
                "The check makes a fixed threshold dearer",
                f"{threshold} + {check} / {threshold}",
                theirs,
                MORE,
                lambda seed, name, t=threshold, c=check: (  # type: ignore[misc]
                    seed.table(t, c, name) / seed.table(t, "", name)
                ),
            )
        )
    for check, theirs in (("0.4", 248.5 / 371.4), ("0.6", 180.2 / 347.4)):
        listed.append(
            found(
                "Adaptive is the cheapest that has a check",
                f"{ADAPTIVE} + {check} / 0.4 + {check}",
                theirs,
                LESS,
                lambda seed, name, c=check: (  # type: ignore[misc]
                    seed.table(ADAPTIVE, c, name) / seed.table("0.4", c, name)
                ),
            )
        )
    for check, theirs in (("0.4", 248.5 / 269.9), ("0.6", 180.2 / 269.9)):
        listed.append(
            found(
                "Adaptive with a check is below adaptive without",
                f"{ADAPTIVE} + {check} / {ADAPTIVE}",
                theirs,
                LESS,
                lambda seed, name, c=check: (  # type: ignore[misc]
                    seed.table(ADAPTIVE, c, name) / seed.table(ADAPTIVE, "", name)
                ),
            )
        )
    for check_noise in CHECK_NOISES:
        listed.append(
            found(
                "Adaptive + .6 is the cheapest at the least noise (5.15)",
                f"σ_e .1 / the cheapest of .2 to .5, σ_c {check_noise:g}",
                None,
                LESS,
                lambda seed, name, c=check_noise: (  # type: ignore[misc]
                    seed.curve("5.15", ADAPTIVE, name, c)[0]
                    / min(seed.curve("5.15", ADAPTIVE, name, c)[1:])
                ),
            )
        )
    for threshold in ("0.2", "0.4", "0.6", ADAPTIVE):
        listed.append(
            found(
                "ε about halves from σ_e .1 to .2 (5.13)",
                f"{threshold}: .2 / .1",
                None,
                (0.4, 0.6),
                lambda seed, name, t=threshold: (  # type: ignore[misc]
                    seed.curve("5.13", t, name)[1] / seed.curve("5.13", t, name)[0]
                ),
            )
        )
    listed.append(
        found(
            "The higher a fixed threshold, the cheaper (5.13)",
            "0.6 / 0.4, σ_e .3",
            None,
            LESS,
            lambda seed, name: (
                seed.curve("5.13", "0.6", name)[2] / seed.curve("5.13", "0.4", name)[2]
            ),
        )
    )
    listed.append(
        found(
            "Adaptive and .4 are close without a check (5.13)",
            f"{ADAPTIVE} / 0.4",
            269.9 / 268.4,
            (0.9, 1.1),
            lambda seed, name: seed.table(ADAPTIVE, "", name) / seed.table("0.4", "", name),
        )
    )
    listed.append(
        found(
            "The check doubles F1 (5.14)",
            "macro F1, 0.4 + 0.6 / 0.4",
            None,
            (1.8, math.inf),
            lambda seed, name: seed.table("0.4", "0.6", name) / seed.table("0.4", "", name),
            "macro_f1_printed",
            "macro_f1_sound",
        )
    )
    return listed


_NOISE = {"claimed": "claimed_independent", SOUND: "left_out_independent"}


class _Seed:
    """The rows of one ensemble."""

    def __init__(self, rows: Rows) -> None:
        self._table = {(row["th_e"], row["th_c"]): row for row in rows if row["table"] == "5.4"}
        self._curves = {
            (row["table"], row["th_e"], row["sigma_c"], row["sigma_e"]): row
            for row in rows
            if row["table"] in ("5.13", "5.14", "5.15")
        }

    def table(self, threshold: str, check: str, column: str) -> float:
        """Return a column of a row of Table 5.4."""
        return float(self._table[threshold, check][column])

    def curve(
        self, figure: str, threshold: str, column: str, check: float | str = ""
    ) -> list[float]:
        """Return a column by σ_e; with a check of this σ_c."""
        return [float(self._curves[figure, threshold, check, noise][column]) for noise in NOISES]


class Cheapest(NamedTuple):
    """The setting that costs least.

    Attributes:
        setting: Thresholds th_e and th_c.
        epsilon: Cost ε of the setting.
        second: Next setting by cost; None if there is no other.
        ratio: Ratio of the second's cost to the first's, seed by seed.
    """

    setting: Setting
    epsilon: Estimate
    second: Setting | None
    ratio: Estimate | None

    def __str__(self) -> str:
        wide = "" if self.epsilon.wide is None else f" ± {self.epsilon.wide:.0f}"
        said = f"**{named(self.setting)}**, ε = {self.epsilon.mean:.0f}{wide}"
        if self.second is None or self.ratio is None:
            return f"{said}, the only one"
        return f"{said}, before {named(self.second)}, which costs {_said(self.ratio)} times as much"


def named(setting: Setting) -> str:
    """Return a setting as text."""
    return " + ".join(filter(None, setting))


def cheapest(
    rows: Rows, column: str, among: Callable[[Setting], bool] = lambda setting: True
) -> Cheapest:
    """Find the setting of Table 5.4 with the least mean of a column.

    Args:
        rows: Rows of all seeds.
        column: Column of costs.
        among: Function that tells whether a setting is compared.
    """
    costs: Mapping[Setting, list[float]] = {
        setting: [
            float(row[column])
            for row in sorted(rows, key=lambda row: row["seed"])
            if row["table"] == "5.4" and (row["th_e"], row["th_c"]) == setting
        ]
        for setting in PUBLIC
        if among(setting) and not (column == "claimed" and setting[0] == GRID)
    }
    first, second, *_ = *sorted(costs, key=lambda setting: sum(costs[setting])), None
    if second is None:
        return Cheapest(first, estimate(costs[first]), None, None)
    ratios = [b / a for a, b in zip(costs[first], costs[second], strict=True)]
    return Cheapest(first, estimate(costs[first]), second, estimate(ratios))


_COLOURS = {"0.2": "#1f77b4", "0.4": "#2ca02c", "0.6": "#9467bd", ADAPTIVE: "#d62728"}
_SHADES = {"5.14": ("#c7e9c0", "#74c476", "#006d2c"), "5.15": ("#fcbba1", "#fb6a4a", "#99000d")}
_WITH_CHECK = {"5.14": "0.4 + 0.6", "5.15": f"{ADAPTIVE} + 0.6"}


def _draw(rows: Rows, path: Path) -> None:
    """Draw one picture of six panels.

    Args:
        rows: Means over seeds, with their intervals.
        path: Path of the picture.
    """
    claimed = "ε of 1,000 answers, as claimed (5.13b, 5.14b, 5.15b)"
    soundly = "the same, soundly: exact outcomes, left out, v = 3"
    charts = [
        lambda axis: _draw_right(axis, rows),
        lambda axis: _costs(axis, rows, "claimed", claimed),
        lambda axis: _costs(axis, rows, SOUND, soundly),
        lambda axis: _traded(axis, rows),
        lambda axis: _distribution(axis, rows, "0.4"),
        lambda axis: _distribution(axis, rows, ADAPTIVE),
    ]
    multiples(path, (16, 9.5), 3, charts)


def _draw_right(axis: Any, rows: Rows) -> None:
    for threshold, colour in _COLOURS.items():
        own = _curve(rows, "5.13", threshold, "")
        for name, line in (("printed", "-"), ("sound", "--")):
            label = threshold if name == "printed" else f"{threshold}, soundly (v = 3)"
            _line(axis, own, f"macro_f1_{name}", colour, line, label)
    for table in _WITH_CHECK:
        own = _curve(rows, table, None, CHECK_NOISES[-1])
        colour = _SHADES[table][-1]
        _line(axis, own, "macro_f1_printed", colour, ":", f"{_WITH_CHECK[table]}, σ_c .6")
    axis.set(title="macro F1 of answers (5.13a to 5.15a)", xlabel="σ_e", ylabel="macro F1")
    axis.set_ylim(0, 1.4 * axis.get_ylim()[1])
    axis.legend(fontsize=7, ncols=2, loc="upper center")


def _costs(axis: Any, rows: Rows, column: str, title: str) -> None:
    for threshold, colour in _COLOURS.items():
        _line(axis, _curve(rows, "5.13", threshold, ""), column, colour, "-", threshold)
    for table, shades in _SHADES.items():
        for noise, shade in zip(CHECK_NOISES, shades, strict=True):
            label = f"{_WITH_CHECK[table]}, σ_c {noise:g}"
            _line(axis, _curve(rows, table, None, noise), column, shade, ":", label)
    axis.set(title=title, xlabel="σ_e", ylabel="ε at δ = 10⁻⁸", yscale="log")
    ticks = (25, 50, 100, 200, 400, 800)
    axis.set_yticks(ticks, list(map(str, ticks)))
    axis.minorticks_off()
    axis.legend(fontsize=7, ncols=2)


def _traded(axis: Any, rows: Rows) -> None:
    for threshold, colour in _COLOURS.items():
        own = _curve(rows, "5.13", threshold, "")
        for costs, name, line in (("claimed", "printed", "-"), (SOUND, "sound", "--")):
            label = f"{threshold}, {'as claimed' if costs == 'claimed' else 'soundly'}"
            points = [(float(row[costs]), float(row[f"macro_f1_{name}"])) for row in own]
            axis.plot(*zip(*points, strict=True), line, color=colour, marker=".", label=label)
    axis.set(title="F1 against ε of 1,000 answers (5.13c)", xlabel="ε", ylabel="macro F1")
    plain_logarithmic(axis, (25, 50, 100, 200, 400, 800))
    axis.legend(fontsize=7, loc="lower right")


def _distribution(axis: Any, rows: Rows, threshold: str) -> None:
    import numpy as np

    bins = [row for row in rows if row["table"] == "5.16" and row["th_e"] == threshold]
    edges = np.array([float(row["q"]) for row in bins])
    width = edges[1] / edges[0]
    for column, colour, label in (
        ("answered_share", "#bbbbbb", "all samples"),
        ("sound_share", "#6baed6", "answered with a check at .6"),
    ):
        shares = [100 * float(row[column]) for row in bins]
        axis.bar(edges / width, shares, edges - edges / width, align="edge", color=colour,
                 label=label, edgecolor="white")  # fmt: skip
    axis.set(title=f"q at th {threshold}, σ_e .4, σ_c .6 (5.16)", xscale="log", xlabel="q")
    axis.set_xlim(1, 1e-4)
    axis.set_ylabel("% of samples")
    costs = axis.twinx()
    there = [row for row in bins if row["claimed"] != ""]
    middles = [float(row["q"]) / width**0.5 for row in there]
    costs.plot(middles, [float(row["claimed"]) for row in there], "r_", markersize=10,
               label="ε of 1,000 such, as claimed")  # fmt: skip
    costs.set_ylim(0)
    costs.set_ylabel("ε")
    both = [each.get_legend_handles_labels() for each in (axis, costs)]
    axis.legend(both[0][0] + both[1][0], both[0][1] + both[1][1], fontsize=7, loc="upper right")


def _curve(rows: Rows, table: str, threshold: str | None, check_noise: float | str) -> list[Row]:
    found = [
        row
        for row in rows
        if row["table"] == table
        and row["th_e"] == (row["th_e"] if threshold is None else threshold)
        and row["sigma_c"] == check_noise
    ]
    return sorted(found, key=lambda row: float(row["sigma_e"]))


def _line(axis: Any, rows: list[Row], column: str, colour: str, line: str, label: str) -> None:
    places = [float(row["sigma_e"]) for row in rows]
    curve(axis, places, rows, column, fmt=line, color=colour, label=label, capsize=2)


NAME = "audioset-privacy"
TEACHERS = 50

_VERSION = 1
"""Cache format version; part of the key."""
_SAME = ("table", "th_e", "th_c", "sigma_e", "sigma_c", "answers")
_COLUMNS = (
    *("answered_share", "claimed", "claimed_asked", "claimed_independent", "q"),
    *("claimed_5000", "claimed_independent_5000"),
    *("macro_f1_printed", "micro_f1_printed", "never_named_printed"),
    *("sound_share", "macro_f1_sound", "micro_f1_sound", "never_named_sound"),
    *(
        f"{whom}_{how}"
        for whom in ("left_out", "replaced", "uncut")
        for how in ("independent", "dependent", "exact")
    ),
)


@dataclass(frozen=True)
class PrivacyPlan:
    """The settings of a measurement.

    Attributes:
        ensemble: Function from a seed to its teachers' votes on the queries.
        described: Description of the ensembles in a sentence, for the note.
        key: Name of the ensembles; part of the key of kept rows.
        work: Folder of kept rows.
        seeds: Number of ensembles, each with its own mixtures, teachers and noise.
        progress: Callback that receives the progress.
    """

    ensemble: Callable[[int], SampleVotes]
    described: str
    key: str
    work: Path
    seeds: int
    progress: Progress = silent

    def __post_init__(self) -> None:
        checks.whole("seeds", self.seeds)

    @property
    def numbers(self) -> range:
        """Seeds from 1 on; 0 was used in development."""
        return range(1, self.seeds + 1)


def reproduce(plan: PrivacyPlan) -> Reproduction:
    """Make Table 5.4's costs and Figures 5.13 to 5.16; keep each seed's rows."""
    rows = [row for seed in plan.numbers for row in _of_seed(plan, seed)]
    averaged = averages(rows)
    return Reproduction(
        NAME, averaged, lambda path: _draw(averaged, path), _note(rows, averaged, plan.described)
    )


def _of_seed(plan: PrivacyPlan, seed: int) -> list[Row]:
    done = 0

    def told(what: str) -> None:
        nonlocal done
        plan.progress(f"ensemble {seed} of {plan.seeds}: {what}", done, len(PUBLIC) + 5)
        done += 1

    return Kept(plan.work).rows(
        "privacy",
        [_VERSION, plan.key, seed],
        lambda: list(measure(plan.ensemble(seed), seed, told)),
    )


def averages(rows: Sequence[Row]) -> list[Row]:
    """Compute means over seeds, with half of their 95 % intervals, beside Muschiol's figures."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        bucket = row["q"] if row["table"] == "5.16" else ""
        groups.setdefault((*(row[name] for name in _SAME), bucket), []).append(row)
    found = []
    for key, group in groups.items():
        out: Row = dict(zip(_SAME, key, strict=False))
        out["seeds"] = len(group)
        whole = [{name: row.get(name, "") for name in _COLUMNS} for row in group]
        out |= means(whole, _COLUMNS)
        printed = TABLE_5_4[2000].get((str(key[1]), str(key[2])))
        here = out["table"] == "5.4" and printed is not None
        out |= {
            "theirs": printed.dependent if here and printed else "",
            "theirs_independent": printed.independent if here and printed else "",
            "theirs_q": printed.q if here and printed else "",
        }
        found.append(out)
    return found


def _printed(value: str | float | int) -> str:
    return "–" if value == "" else f"{float(value):.1f}"


def _table(rows: Sequence[Row]) -> str:
    shown = [
        {
            "th_e": row["th_e"],
            "th_c": row["th_c"] or "–",
            "ε, theirs": _printed(row["theirs"]),
            "ours": with_interval(row, "claimed", 0),
            "by noise, theirs": _printed(row["theirs_independent"]),
            "ours ": with_interval(row, "claimed_independent", 1),
            "q, theirs": row["theirs_q"] or "–",
            "ours  ": with_interval(row, "q", 3),
            "answered": with_interval(row, "answered_share", 2),
            "**holds**, noise alone": with_interval(row, "left_out_independent", 0),
            "**holds**, by votes": with_interval(row, SOUND, 0),
            "F1 of their rule": with_interval(row, "macro_f1_printed", 2),
            "F1 of what holds": with_interval(row, "macro_f1_sound", 2),
        }
        for row in rows
        if row["table"] == "5.4"
    ]
    return markdown_table(shown, list(shown[0]))


def _units(rows: Sequence[Row]) -> str:
    shown = [
        {
            "th_e": row["th_e"],
            "th_c": row["th_c"] or "–",
            **{
                f"{words}, {how}": with_interval(row, f"{whom}_{name}", 0)
                for whom, words in (
                    ("left_out", "left out, v = 3"),
                    ("replaced", "replaced, v = 3"),
                    ("uncut", "all outputs count"),
                )
                for name, how in (
                    ("independent", "noise"),
                    ("dependent", "Theorem 6"),
                    ("exact", "exact"),
                )
            },
        }
        for row in rows
        if row["table"] == "5.4"
    ]
    return markdown_table(shown, list(shown[0]))


def _fits() -> str:
    rows = [row for row in fits() if row["th_c"]]
    return markdown_table(rows, list(rows[0]))


def _any(setting: Setting) -> bool:
    return True


def _checked(setting: Setting) -> bool:
    return bool(setting[1])


def _note(rows: Sequence[Row], averaged: Sequence[Row], described: str) -> str:
    """Return the note in Markdown: the table, the statements, and why figures differ."""
    found = statements(rows)
    one = adaptive_threshold()
    right = {
        (str(row["th_e"]), str(row["th_c"])): float(row["macro_f1_sound"])
        for row in averaged
        if row["table"] == "5.4"
    }

    def good(setting: Setting) -> bool:
        return right[setting] >= 0.9 * max(right.values())

    alone, checked = (cheapest(rows, "left_out_independent", among) for among in (_any, _checked))
    return f"""# Privacy of votes against thresholds

After chapter 5.3 and Table 5.4 of Muschiol (2021). AudioSet is not here, so orderings and ratios
can be compared, and numbers only where they do not depend on votes.

{described}

Noise is σ_e = .3 and σ_c = .6, variances in units of the {TEACHERS} teachers: 3.87 and 5.48 votes.
All ε are of 2,000 answers at δ = 10⁻⁸; costs add up query by query, so they are those of the mean
answer and of the checks that an answer takes. Intervals are Student's at 95 % over ensembles.

## Table 5.4

{_table(averaged)}

*Ours* is by Muschiol's accounting: Theorems 12 to 14 with n = 3, orders from 2, its conversion,
and its adaptive threshold from votes without noise. *Holds*: a teacher left out, of whose outputs
only the three largest count (v = 3), noise before the adaptive threshold, a threshold from a grid
of {", ".join(f"{share:g}" for share in SHARES)} by Gumbel noise of {GUMBEL:g} votes, the best
order, and bits instead of noisy votes. *Noise alone* may be published; *by votes* is exact
outcomes, in both directions, and itself private. For an adaptive threshold no exact law is known
here; its cost by noise is shown instead. F1 is the macro average, of answered samples.

**Its data-independent column comes out exactly**: 418.4, and 1,018.4 for 5,000 answers, at λ = 2,
the smallest of its orders; the best order gives 321.4 and 691.9.

## Its statements, and our results

- By their accounting: {verdicts([each.claimed for each in found])}
- Soundly: {verdicts([each.sound for each in found if each.sound is not None])}

{markdown_table([each.row() for each in found], list(found[0].row()))}

*Soundly* is the same ratio by exact outcomes of the sound rules. The check improves no answer: on
the samples that pass it, the same rule without a check is as accurate, and F1 rises because the
others are left out.

## Which setting is cheapest

- As claimed: {cheapest(rows, "claimed")}; with a check: {cheapest(rows, "claimed", _checked)}.
- What holds, by noise alone: a fixed threshold without a check, ε = {alone.epsilon.mean:.0f},
  whichever it is: only bits leave. With a check: one at {checked.setting[1]}, ε =
  {checked.epsilon.mean:.0f}, whichever the threshold is.
- What holds, by votes: {cheapest(rows, SOUND)}; with a check: {cheapest(rows, SOUND, _checked)}.
- What holds, of settings whose F1 is nine tenths of the best one's at least: by votes
  {cheapest(rows, SOUND, good)}; by noise alone {cheapest(rows, "left_out_independent", good)}.

## Why they differ

- **An adaptive threshold of raw votes has no such bound.** One query, one vote of fifty changed,
  (50, 25, 0, 0, 0) to (50, 26, 0, 0, 0): claimed {one.claimed:.1f}, measured
  {one.measured.low:.1f}. With noise first it holds, and costs all of its noise.
- **n = 3 is not a sensitivity**, as a teacher that is trained anew may change every label. It is
  one if its three largest outputs count and it is left out; if it is replaced, six labels change.
- **λ = 2 is not the best order**, and **bits reveal less than noisy votes**: .64 of it where λ ≪ σ.
  Together these make up for what the claims leave out.
- **Theorem 6** needs all labels to be clear together (q); exact outcomes add up each label's cost,
  and most are clear. So the sound cost falls below the claimed one there.
- **A check** is paid by every query that is asked; 4.2.4 says that answered samples pay nothing.
  The share of samples that must have been answered for Table 5.4's data-independent column, by
  three formulas, shows that its table does charge them: only one noise for every sample *asked*
  gives the same share for 2,000 and 5,000 answers, near Table 5.3 (60 % and 44 %, without noise).

{_fits()}

## Units of protection, and methods

{_units(averaged)}

Theorem 6 bounds one direction of the divergence and is no more than the noise. *All outputs count*:
a teacher may change all twenty labels.
"""


_LINEAR = {"mixtures": 6000, "validation": 1000, "test": 100}
"""Numbers of mixtures for linear teachers, 120 each; their test mixtures are not used."""


def on_mixtures(
    data: Path,
    work: Path,
    kind: str,
    queries: int,
    seeds: int,
    processes: int,
    progress: Progress,
) -> PrivacyPlan:
    """Plan a study of fifty teachers on mixtures; small networks are those of `audioset-ensemble`.

    Args:
        data: Folder that holds `esc10`, `fsdd` and perhaps `free_sounds`.
        work: Folder of ensembles, and of each one's kept rows.
        kind: Kind of teachers.
        queries: Maximum number of mixtures from which costs are computed.
        seeds: Number of ensembles.
        processes: Number of processes for training.
        progress: Callback that receives the progress.

    Raises:
        InvalidParametersError: The kind is unknown, or there are no queries or seeds.
        DatasetError, UnreadableFileError, InvalidInputError: The sound cannot be used; see
            `taggers.ensembles.prepared`.
    """
    chosen = LearnerKind(kind)
    linear = chosen is LearnerKind.LINEAR
    size = TaggerStudySize(queries=queries, **_LINEAR) if linear else TaggerStudySize()
    study = TaggerStudy(data, work, size)
    teaching = Teaching(kind=chosen)

    def ensemble(seed: int) -> SampleVotes:
        asked = prepared(study, TEACHERS, seed, teaching, processes, progress).queries
        return SampleVotes.of(asked.probabilities[:, :queries], asked.truth[:queries])

    each = size.mixtures // TEACHERS
    whom = "logistic regressions on mean and deviation of mel bands" if linear else "small networks"
    number = min(queries, size.queries)
    described = f"""Here {TEACHERS} teachers, {whom}, learn from
{each} mixtures each: one to three of 20 labels (ESC-10 and spoken digits) and a background of free
sounds, two on average, in a long tail (rank^−.8). They are asked about {number:,} mixtures of other
recordings, {seeds} times with other mixtures and teachers. Teachers share recordings, so the unit
that is protected is a mixture."""
    key = repr((contents(data), size, study.recipe, study.mel, teaching, queries))
    return PrivacyPlan(ensemble, described, key, work, seeds, progress)
