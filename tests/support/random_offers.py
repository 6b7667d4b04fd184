"""Phases and offers at random, each with what our phone says to them.

`python -m support.random_offers SEED COUNT` prints one case a line, as JSON
(`docs/vectors/phones.py` says what a case holds). The same seed gives the same cases, whatever
their number, so that another phone can be held to them.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import msgspec
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs" / "vectors"))

import phones

from earshot_protocol.environments import LabelHierarchy
from earshot_protocol.errors import InvalidParametersError, UnexpectedMessageError
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.discovery import (
    DiscoveryParameters,
    SumCells,
    SumLabels,
    rows_of,
)
from earshot_protocol.phases.labelling import CheckLabels, LabellingParameters, LabelSamples
from earshot_protocol.phases.parameters import Choices, Parameters
from earshot_protocol.phases.places import AgreedPlaces
from earshot_protocol.phases.plan import SumPartTask
from earshot_protocol.phases.statistics import CountContacts, StatisticsParameters
from earshot_protocol.prio3.shapes import ballot
from earshot_protocol.privacy.sum_noise import WholeGaussian, WholeLaplace
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.start_centroids import CentroidSet
from earshot_protocol.two_operators.messages import SendReport
from earshot_protocol.wire import Matrix

Case = dict[str, Any]
_T = TypeVar("_T")

LABELS = ("street", "öffentlicher Verkehr", "nature", "home")
CHOICES: Choices = (("siren", "crossing"), ("Straßenbahn",), (), ("home", "kitchen"))
TODAY = datetime.fromtimestamp(phones.NOW, UTC).date()


def cases(seed: int, count: int) -> Iterator[Case]:
    """The first cases of a seed."""
    for number in range(count):
        # S311: they are cases of tests.
        yield {"case": number, **Drawn(Random(f"{seed}, {number}")).case()}


class Drawn:
    """One case, drawn."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.fine = random.random() < 0.4
        """Whether nothing is drawn that a phone refuses by itself; budgets may still refuse."""

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def one(self, usual: tuple[_T, ...], odd: tuple[_T, ...], often: float = 0.05) -> _T:
        """One of the usual values, and now and then an odd one."""
        return self.random.choice(odd if not self.fine and self.chance(often) else usual)

    def between(self, least: float, most: float) -> float:
        """A number whose logarithm is uniform."""
        return math.exp(self.random.uniform(math.log(least), math.log(most)))

    # ------------------------------------------------------------------------------- the case

    def case(self) -> Case:
        parameters, choices = self.parameters()
        tasks = [self.first(parameters, choices)]
        while len(tasks) < 4 and self.chance(0.6):
            tasks.append(self.later(parameters, choices, tasks))
        window = parameters.step_seconds
        late = (-3601.0, -1800.0, window + 1800.0, window + 3601.0)
        limits, now = self.limits(), phones.NOW + self.one((0.0, window / 2), late)
        about: Case = {
            "limits": limits,
            "now": now if math.isfinite(now) else phones.NOW,  # a window may be infinite
            "recordings": self.random.choice((0, 1, 20, 1001)),
            "ledger": self.ledger(),
        }
        if not self.fine and self.chance(0.05):
            about[self.random.choice(("leaders", "helpers"))] = []
        return phones.case(tasks, **about)

    def limits(self) -> Case:
        """Limits other than the defaults, of a few phones."""
        if self.chance(0.6):
            return {}
        if self.chance(0.3):  # one who minds recordings alone, and not for long
            whole = ("phone", "yearly_phone", "lifetime_phone")
            spans = {f"largest_{name}_epsilon": 1e6 for name in whole}
            return (
                spans
                | {f"largest_{name}_delta": 0.5 for name in whole}
                | {
                    "largest_yearly_epsilon": self.between(1.0, 20.0),
                    "largest_lifetime_epsilon": self.between(5.0, 40.0),
                }
            )
        drawn: dict[str, Callable[[], float]] = {
            "least_phones": lambda: self.random.choice((3, 500, 2000)),
            "largest_phones": lambda: self.random.choice((400, 10**5)),
            "largest_dropout": lambda: self.random.choice((0.05, 0.2, 0.9)),
            "largest_epsilon": lambda: self.between(0.1, 10.0),
            "largest_delta": lambda: self.between(1e-7, 1e-4),
            "largest_yearly_epsilon": lambda: self.between(1.0, 50.0),
            "largest_lifetime_epsilon": lambda: self.between(2.0, 200.0),
            "largest_phone_epsilon": lambda: self.between(0.1, 10.0),
            "largest_phone_delta": lambda: self.between(1e-7, 1e-4),
            "largest_yearly_phone_epsilon": lambda: self.between(0.5, 20.0),
            "largest_yearly_phone_delta": lambda: self.between(1e-7, 1e-4),
            "largest_lifetime_phone_epsilon": lambda: self.between(1.0, 60.0),
        }
        names = self.random.sample(sorted(drawn), self.random.choice((1, 2, 5)))
        return {name: drawn[name]() for name in names} | {"any_delta": self.chance(0.2)}

    def ledger(self) -> list[Case]:
        """Phases of former days, some of which lie in the future."""
        entries: list[Case] = []
        spenders = self.random.choice((0, 0, 3, 12, 40, 80))
        ages = sorted((self.random.randrange(0, 800) for _ in range(spenders)), reverse=True)
        for age in ages:
            day = TODAY - timedelta(days=age)
            if self.chance(0.05):
                day = TODAY + timedelta(days=40)
            spent = Drawn(self.random)
            spent.fine = True
            expenses = spent.parameters()[0].expenses(1)
            entries += phones.exported(expenses, self.random.randbytes(16), day)
        return entries

    # ------------------------------------------------------------------------------ parameters

    def parameters(self) -> tuple[Parameters, Choices]:
        choices = CHOICES if self.chance(0.4) else ()
        hierarchy = LabelHierarchy(dict(zip(LABELS, choices or ((),) * 4, strict=True)))
        by = self.random.choice((SummationName.TWO_OPERATORS, SummationName.TWO_OPERATORS_UNPROVED))
        # The list of a larger sum is too long, which a phone in TypeScript leaves to the leader.
        large = (10**5,) if by.proved else (9 * 10**6, 10**7 + 1, 10**8)
        common = {
            "phones": self.one(
                (100, 500, 500, 10_000, large[0]),
                (3, 50, 99, *large[1:], 2, 2**53 + 1, -(2**63)),
            ),
            "labels": self.one((LABELS,), (LABELS[:3], (*LABELS[:3], LABELS[0]), ())),
            "dropout": self.one((0.0, 0.1, 0.3), (0.31, 0.5, 0.999, 1.0, -0.1, math.nan)),
            "corrupted": self.one((0.0, 0.05, 0.25), (0.9, 1.0, -0.5, math.inf)),
            "step_seconds": self.one((86_400.0, 3600.0), (0.0, math.inf, -1.0, 0.25)),
            "noise_crowd": self.one((10_000,), (1, 10**8, 10**8 + 1, 0)),
            "hierarchy": self.one(
                (hierarchy.digest if choices else b"",), (bytes(32), bytes(31), b"")
            ),
            "summation": by,
        }
        make = self.random.choice((self.statistics, self.discovery, self.labelling))
        return make(common, hierarchy), choices

    def statistics(self, common: Case, hierarchy: LabelHierarchy) -> Parameters:
        since, until = self.one(
            ((None, None), (date(2026, 1, 1), date(2026, 1, 8))),
            ((date(2026, 1, 8), date(2026, 1, 8)), (None, date(2026, 1, 8))),
        )
        places = None
        if self.chance(0.3):
            columns = self.one((2, 8), (200,))
            rows = self.rows(self.one((1, 5), (0,)), columns)
            places = AgreedPlaces(
                encoder=self.one((phones.ENCODER,), ("contrast-1",)),
                geometry=Geometry.SPHERICAL,
                centroids=Matrix.of(rows),
                labels=tuple(self.one((0, 1, 2, -1), (4,)) for _ in rows),
                radius=self.one((None, 0.25), (2.0,)),
            )
        return StatisticsParameters(
            contacts=self.one((1, 3, 20), (0, 10_001, 2**53, 2**64 - 1)),
            noise=self.one((self.between(5, 50),), (0.5, 1e-9, 1e-10, 0.0, math.nan)),
            delta=self.one((1e-6,), (1e-9, 1e-3, 0.0, 1.0)),
            since=since,
            until=until,
            places=places,
            confusion=places is not None and self.chance(0.5),
            **common,
        )

    def discovery(self, common: Case, hierarchy: LabelHierarchy) -> Parameters:
        start = CentroidSet.of(self.rows(4, self.one((2, 8), (130,), 0.1)))
        if not self.fine and self.chance(0.05):
            cut = self.random.choice((start.rows[:-1], start.rows[:-2], bytes(len(start.rows))))
            start = msgspec.structs.replace(start, rows=cut)
        return DiscoveryParameters(
            encoder=self.one((phones.ENCODER,), ("contrast-1",)),
            start=start,
            most_cells=self.one((4, 6), (3, 1025)),
            sums=self.one((0, 1, 2, 3), (4, -1)),
            cells_noise=self.one((self.between(3.0, 60.0),), (1e-9, 1e-10, 1e9, 2e9, math.inf)),
            labels_noise=self.one((self.between(3.0, 60.0),), (0.0, 1e-3, -5.0, math.nan)),
            rows=self.one((4, len(rows_of(hierarchy))), (5, 2, 100_000)),
            kinds=self.one((1, 1, 3), (0, 17)),
            delta=self.one((1e-6, 1e-8), (2e-6, 1e-5, 0.0, 1.0)),
            **common,
        )

    def labelling(self, common: Case, hierarchy: LabelHierarchy) -> Parameters:
        samples = self.rows(self.one((1, 5), (0,)), self.one((2, 8), (130,)))
        if not self.fine and self.chance(0.03):
            samples = 0 * samples
        return LabellingParameters(
            encoder=self.one((phones.ENCODER,), ("contrast-1",)),
            samples=Matrix.of(samples),
            votes_noise=self.one((self.between(5.0, 100.0),), (1e-7, 0.5, 2e9, math.nan)),
            check_noise=self.one((self.between(5.0, 100.0),), (0.0, 0.5, math.inf)),
            threshold=self.one((50.0, 0.5), (0.0, -1.0, 1e12, math.nan)),
            largest_weight=self.one((1, 3, 16), (0, 17, 2**63)),
            delta=self.one((1e-6, 1e-8), (2e-6, 1e-5, 0.0, 1.0)),
            **common,
        )

    def rows(self, count: int, columns: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        drawn = [self.random.uniform(-1.0, 1.0) for _ in range(count * columns)]
        return np.array(drawn).reshape(count, columns)

    # ----------------------------------------------------------------------------------- tasks

    def first(self, parameters: Parameters, choices: Choices) -> SumPartTask:
        """The task with which a phase begins, or now and then one that begins none."""
        told: Case = {
            "phase": self.random.randbytes(16),
            "parameters": parameters,
            "choices": self.one((choices,), (CHOICES[:2], (("siren",),) * 4)),
            "opening": self.opening(self.one((0, 7), (parameters.phones, 2**32 - 1))),
        }
        task: SumPartTask
        if isinstance(parameters, StatisticsParameters):
            task = CountContacts(**told)
        elif isinstance(parameters, LabellingParameters):
            task = LabelSamples(**told)
        elif isinstance(parameters, DiscoveryParameters) and parameters.sums:
            task = SumCells(repetition=self.one((1,), (2, 3)), **told)
        else:
            task = SumLabels(**told)
            if isinstance(parameters, DiscoveryParameters):
                task = self.split(task, parameters, parameters.start.count)
        return self.offered(task, parameters)

    def later(
        self, parameters: Parameters, choices: Choices, before: list[SumPartTask]
    ) -> SumPartTask:
        """The task that follows, or one that does not."""
        last = before[-1]
        if self.chance(0.2):
            return self.random.choice(before)
        if self.chance(0.1):  # the same phase under other parameters, or the same sum once more
            other = msgspec.structs.replace(parameters, phones=parameters.phones + 1)
            again = self.first(self.random.choice((parameters, other)), choices)
            return msgspec.structs.replace(again, phase=last.phase)
        if self.chance(0.1):
            return self.first(*self.parameters())
        told: Case = {
            "phase": self.one((last.phase,), (bytes(16),)),
            "opening": self.opening(self.one((last.index,), (3,))),
        }
        if isinstance(parameters, LabellingParameters):
            count, labels = parameters.samples.rows, len(parameters.labels)
            proposed = [
                self.one((0, 1), (labels,)) for _ in range(self.one((count,), (count + 1,)))
            ]
            return self.offered(CheckLabels(proposed=tuple(proposed), **told), parameters)
        if not isinstance(parameters, DiscoveryParameters):
            return self.offered(CheckLabels(proposed=(0,), **told), parameters)
        done = sum(isinstance(each, SumCells) for each in before)
        columns = parameters.start.dimensions
        cells = Matrix.of(self.rows(self.one((1, 4), (0, 7)), self.one((columns,), (columns + 1,))))
        if 0 < done < parameters.sums and done < 3:
            return self.offered(SumCells(repetition=done + 1, centroids=cells, **told), parameters)
        labels = SumLabels(centroids=self.one((cells,), (None,)), **told)
        return self.offered(self.split(labels, parameters, cells.rows), parameters)

    def split(self, task: SumLabels, parameters: DiscoveryParameters, cells: int) -> SumLabels:
        """The same task with a kind for each cell, where rows are split by kinds."""
        if parameters.kinds == 1:
            return task
        count = self.one((cells,), (cells + 1, 0))
        kinds = tuple(self.one((0, 1, 2), (3, 15)) for _ in range(count))
        return msgspec.structs.replace(task, kinds=kinds)

    def opening(self, index: int) -> SendReport:
        return phones.opening(self.random.randbytes(16), index)

    def offered(self, task: SumPartTask, parameters: Parameters) -> SumPartTask:
        """The task with an offer, in which something may be wrong."""
        try:
            good = phones.offered(task, parameters)
        except (InvalidParametersError, UnexpectedMessageError, ValueError, OverflowError):
            return task  # nothing can be offered under these parameters, or the part is not theirs
        given = good.opening
        assert isinstance(given, SendReport)
        assert given.offer is not None
        if self.fine or self.chance(0.5):
            return good
        offer, terms = given.offer.offer, given.offer.offer.parameters
        noise = terms.noise
        size = msgspec.structs.astuple(noise)[0]
        less, more = type(noise)(size - 1), type(noise)(size + 1)
        other = WholeGaussian(2**40) if isinstance(noise, WholeLaplace) else WholeLaplace(2**40)
        stranger = phones.identity(phones.STRANGER)
        changes: Case = self.random.choice(
            (
                {"leader": stranger},
                {"helper": stranger},
                {"helper": offer.leader},
                {"noise": less},
                {"noise": more},
                {"noise": other},
                {"least": terms.least - 1},
                {"least": terms.least + 1},
                {"bound": terms.bound + 1},
                {"shape": (*terms.shape, 1)},
                {"phones": terms.phones + 1},
                {"window": terms.window + 1.0},
                {"proof": ballot(terms.length, 1)},
                {"sum_id": bytes(16)},
                {"task": bytes(32)},
                {"version": 2},
                {"suite": 2},
                {"key": bytes(32)},
                {"closes": offer.closes + 1.0},
                {"opens": offer.opens - 0.002},
                {"opens": offer.opens - 0.0005},
            )
        )
        return phones.with_offer(task, phones.changed(offer, **changes))


if __name__ == "__main__":
    for each in cases(int(sys.argv[1]), int(sys.argv[2])):
        print(json.dumps(each, ensure_ascii=False, allow_nan=False), flush=True)
