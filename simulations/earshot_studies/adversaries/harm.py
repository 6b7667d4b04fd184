"""The harm that a few phones do by their vectors: to the names of a discovery, and to a week's sum.

Every phase is by two operators, with the product's phones, operators and server. Vectors of legal
length are added up without proofs, which gives the same sum to the last bit, as tests of simulated
phases show. A false vector is sent twice: where nothing is proved, and where inputs are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from earshot_protocol.geometry import Geometry, unit_rows
from earshot_protocol.overriding import override
from earshot_protocol.phases.places import Places
from earshot_protocol.phases.plan import Plan
from earshot_protocol.privacy.mechanisms import GRID
from earshot_protocol.progress import Progress, silent
from earshot_protocol.secure_sum.interface import SummationName
from earshot_server.campaigns.plan import planned
from earshot_simulations.adversary.adversary import Adversary
from earshot_simulations.adversary.attack import Attack
from earshot_simulations.phases.secure_sum import CellFindings
from earshot_simulations.phases.settings import PolicyChoice, Settings, SummationChoice
from earshot_simulations.phases.simulation import simulate
from earshot_simulations.phases.statistics import StatisticsSettings
from earshot_simulations.populations.interface import Recordings
from earshot_simulations.reporting.tables import markdown_table
from earshot_studies.adversaries.town import EMPTY, Town
from earshot_studies.campaigns.estimates import campaign
from earshot_studies.kit.outcome import Reproduction, Row, means, with_interval
from earshot_studies.kit.pictures import curve, multiples

NAME = "harmful-vectors"
PHONES, SEEDS = 1000, 4
SHARES = (0.01, 0.025, 0.05, 0.1)
NONE, NEGATIVE, PUSHED, INVENTED = "none", "negative counts", "a label pushed away", "an empty row"
RAISED = "one place counted up"
FALSE, REFUSED = "one false vector", "one false vector, where inputs are proved"
WEEK, NAMES = "a week", "names"
_CROWDS = (1000, 5000, 20_000)
_BUILT_IN = {NEGATIVE: "negative_counts", PUSHED: "pushed_label", FALSE: "false_vectors"}
_BUILT_IN[REFUSED] = _BUILT_IN[FALSE]
_FIGURES = ("right_name", "attacked_label", "unknown", "radius", "empty_clear", "counted")
_RECORDINGS, _LABELLED, _CONTACTS, _LENGTH = 20, 0.5, 3, 4


class _Some(Attack):
    """An attack of some of the phones, drawn by the seed; no phone vanishes."""

    def __init__(self, members: int) -> None:
        self._members = members

    @override
    def phones(self, count: int, seed: int) -> Collection[int]:
        drawn: list[int] = np.random.default_rng([seed, 0xE]).permutation(count).tolist()
        return drawn[: self._members]

    @override
    def vanishing(
        self, others: Mapping[str, tuple[int, ...]], plan: Plan
    ) -> Mapping[str, tuple[int, ...]]:
        return dict.fromkeys(others, ())


class _Invented(_Some):
    """Give the sound of the first place the label that nobody else gives.

    There is a cell near it, so the row is tested by its component along that.
    """

    name: ClassVar[str] = INVENTED

    def __init__(self, members: int, place: npt.NDArray[np.float32]) -> None:
        super().__init__(members)
        self._place = place

    @override
    def heard(self, phone: int, recordings: Recordings) -> Recordings:
        label = np.full(_RECORDINGS, EMPTY, np.int16)
        return Recordings(np.tile(self._place, (_RECORDINGS, 1)), label, label)


class _Counted(_Some):
    """Count contacts at the first place alone: the most that is legal, or more.

    Args:
        members: Phones that make the attack.
        phones: Phones that each of them counts for.
    """

    name: ClassVar[str] = RAISED

    def __init__(self, members: int, phones: int = 1) -> None:
        super().__init__(members)
        self._phones = phones

    @override
    def added(
        self, phone: int, values: npt.NDArray[np.int64], parameters: Any
    ) -> npt.NDArray[np.int64]:
        vector = np.zeros_like(values)
        vector[0] = (GRID - 1) * self._phones
        return vector


def _sums(attack: str) -> dict[str, Any]:
    """Return the settings of sums, in which operators may leave out phones that they refuse."""
    if attack == REFUSED:
        return {"summation": SummationChoice.TWO_OPERATORS, "dropout": 0.05}
    return {"summation": SummationChoice.TWO_OPERATORS_UNPROVED, "dropout": 0.0}


def discovered(attack: str, share: float, phones: int, seed: int) -> Row:
    """Return the figures of a discovery at ε = 2, one share of whose phones makes an attack."""
    town = Town(phones, _RECORDINGS, _LABELLED, seed)
    built_in = {_BUILT_IN[attack]: share} if attack in _BUILT_IN else {}
    settings = Settings(
        adversary=Adversary(**built_in),
        recordings=_RECORDINGS,
        jobs=1,
        seed=seed,
        **_sums(attack),
    )
    held_out, own = town.held_out(), _Some(0)
    if attack == INVENTED:
        middle = unit_rows(held_out.points[held_out.scenes == 0].mean(axis=0)[None])[0]
        own = _Invented(round(share * phones), middle.astype(np.float32))
    found = simulate(settings, population=town, attack=own).found
    assert isinstance(found, CellFindings)  # noqa: S101 - of this route
    assert found.global_centroids is not None  # noqa: S101 - the phase ended
    places = Places(
        found.global_centroids.astype(np.float32), found.names, Geometry.SPHERICAL, found.radius
    )
    said = np.array([name or "" for name in places.nearest(held_out.points)])
    right = said == np.array(town.labels)[held_out.scenes]
    return {
        "right_name": float(right.mean()),
        "attacked_label": float(right[held_out.scenes == 0].mean()),
        "unknown": float((said == "").mean()),
        "radius": float(places.radius or 0.0),
        "empty_clear": float(town.labels[EMPTY] in found.names),
        "counted": "",
    }


def counted(attack: str, share: float, phones: int, seed: int) -> Row:
    """Return the change of a week's count at the first place, over the contacts made there.

    It is that against the same week, with the same noise, in which nobody attacks.
    """
    settings = StatisticsSettings(
        contacts=_LENGTH,
        recordings=_CONTACTS,
        policy=PolicyChoice.ANYTHING,
        jobs=1,
        seed=seed,
        **_sums(attack),
    )
    liars = (
        _Counted(1, phones // 2) if attack in (FALSE, REFUSED) else _Counted(round(share * phones))
    )
    town, counts = Town(phones, _CONTACTS, 1.0, seed), list[float]()
    for own in (_Some(0), liars):
        found = simulate(settings, population=town, attack=own).found
        assert found.published is not None  # noqa: S101 - the phase ended
        counts.append(found.published.assigned[0])
    made = sum(int((town.recordings(phone).scenes == 0).sum()) for phone in range(phones))
    row: Row = dict.fromkeys(_FIGURES, "")
    return row | {"counted": (counts[1] - counts[0]) / made}


def reproduce(
    seeds: int = SEEDS,
    phones: int = PHONES,
    shares: Sequence[float] = SHARES,
    progress: Progress = silent,
) -> Reproduction:
    """Let phones attack, and measure names and counts.

    Args:
        seeds: Crowds of each attack, at least 1; one has no intervals.
        phones: Phones of a crowd.
        shares: Shares of the phones that make an attack.
        progress: Callback that receives the progress.
    """
    cells = [(NAMES, NONE, 0.0), *((NAMES, each, 1 / phones) for each in (FALSE, REFUSED))]
    cells += [(NAMES, each, share) for each in (NEGATIVE, PUSHED, INVENTED) for share in shares]
    cells += [(WEEK, each, 1 / phones) for each in (FALSE, REFUSED)]
    cells += [(WEEK, RAISED, share) for share in shares]
    rows: list[Row] = []
    for number, (what, attack, share) in enumerate(cells):
        measure, runs = discovered if what == NAMES else counted, list[Row]()
        for seed in range(seeds):
            progress("attacking", number * seeds + seed, len(cells) * seeds)
            runs.append(measure(attack, share, phones, seed))
        legal = "no" if attack in (FALSE, REFUSED) else "yes"
        about: Row = {"sum": what, "attack": attack, "legal": legal, "share": share}
        rows.append({**about, "phones": phones, "seeds": seeds, **means(runs, _FIGURES)})
    progress("attacking", len(cells) * seeds, len(cells) * seeds)
    return Reproduction(NAME, rows, partial(_draw, rows), _note(rows))


def told_change(phones: int) -> int:
    """Return how many phones who agree make a change that a campaign's newest week tells.

    At a place of 5 % of the contacts, as planned; each adds the most that a phone may to one entry.
    """
    plan = planned(campaign(phones, SummationName.TWO_OPERATORS))
    return round(plan.reach.change * plan.reach.contacts / plan.contacts)


_SHOWN = {
    NAMES: {
        "right_name": "right name", "attacked_label": "of the first label", "unknown": "unknown",
        "radius": "radius", "empty_clear": "empty row is clear",
    },
    WEEK: {"counted": "change of the count over the truth"},
}  # fmt: skip


def _table(rows: Sequence[Row], what: str) -> str:
    told = [
        {
            "attack": row["attack"],
            "legal": row["legal"],
            "phones": f"{float(row['share']):.1%}",
            **{shown: with_interval(row, key, 2) for key, shown in _SHOWN[what].items()},
        }
        for row in rows
        if row["sum"] == what
    ]
    return markdown_table(told, list(told[0]))


def _note(rows: Sequence[Row]) -> str:
    changes = ", ".join(f"{told_change(phones)} of {phones:,}" for phones in _CROWDS)
    return f"""# What a few phones do by their vectors

`earshot reproduce {NAME}`: {rows[0]["seeds"]} crowds of {rows[0]["phones"]:,} phones for each
attack, with 95 % intervals. *Legal* vectors have the length that a proof allows; a false one comes
from a single phone. Where inputs are proved, the operators refuse that phone, by name.

## Names

A discovery at ε = 2 per phone, {_RECORDINGS} recordings a phone, half of them labelled, with
fifteen places and a label that nobody gives.

{_table(rows, NAMES)}

## Contacts of a week

{_CONTACTS} contacts a phone, and counts of length {_LENGTH}, as planned for 1,000 phones.

{_table(rows, WEEK)}

So many phones who agree make a change at a place of 5 % that a campaign's newest week tells:
{changes}.
"""


def _draw(rows: Sequence[Row], path: Path) -> None:
    """Draw right names, names of the attacked label, and the counts of a week, by the share."""

    def chart(axis: Any, what: str, key: str, attacks: Sequence[str]) -> None:
        for attack in attacks:
            own = [row for row in rows if row["sum"] == what and row["attack"] in (NONE, attack)]
            curve(axis, [100 * float(row["share"]) for row in own], own, key, label=attack)
        axis.set_xlabel("phones that attack, %")
        axis.set_ylabel(_SHOWN[what][key])
        axis.legend(fontsize="small")

    legal = (NEGATIVE, PUSHED, INVENTED)
    charts = [
        partial(chart, what=NAMES, key="right_name", attacks=legal),
        partial(chart, what=NAMES, key="attacked_label", attacks=legal),
        partial(chart, what=WEEK, key="counted", attacks=(RAISED,)),
    ]
    multiples(path, (13, 4), len(charts), charts)
