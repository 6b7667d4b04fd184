"""The verdict on a phase: what its crowd can find, what crowd could, and who refuses it."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from support.command import earshot
from support.parameters import labelling_parameters, learning_parameters, statistics_parameters

from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.secure_sum.interface import SummationName
from earshot_server.dashboard.verdict import verdict
from earshot_server.phases import sitting
from earshot_server.phases.forecast import Refusal, outlook
from earshot_server.phases.options import PhaseOptions
from earshot_server.phases.proposal import proposed

LABELS = tuple(f"l{number}" for number in range(11))


def wanted(phones: int, **changes: Any) -> PhaseOptions:
    return PhaseOptions(phones=phones, labels=LABELS, **changes)


def discovery(phones: int, **changes: Any) -> Parameters:
    return proposed(wanted(phones, **changes), any_delta=True)[0]


def clear(parameters: Parameters) -> int:
    """Places that stand clear in the sum that decides, as the whole forecast says."""
    part = parameters.plan().parts[-1]
    assert isinstance(part, SecureSum)
    seen = outlook(parameters, part)
    assert seen is not None
    return seen.clear


def test_too_few_phones_are_told_how_many_would_be_enough() -> None:
    said = verdict(discovery(20), [Refusal("least_phones", "phones=20; at least 100")])
    assert said == (
        "20 phones can hardly learn anything here; about 100 would; default phones refuse the "
        "phase (too few phones take part)"
    )
    assert verdict(discovery(4)) == "4 phones cannot learn anything here; about 100 would"


@pytest.mark.parametrize("epsilon", [0.7, 1.0, 2.0])
def test_the_crowd_that_is_advised_finds_something_and_a_smaller_one_does_not(
    epsilon: float,
) -> None:
    few = discovery(25, epsilon=epsilon, cells=20)
    found = re.search(r"about ([\d\u202f]+) would", verdict(few))
    assert found is not None
    advised = int(found[1].replace("\u202f", ""))
    assert clear(msgspec.structs.replace(few, phones=advised)) > 0
    if advised > 100:  # the fewest that default phones accept
        assert clear(msgspec.structs.replace(few, phones=int(0.9 * advised))) == 0
    assert verdict(msgspec.structs.replace(few, phones=advised)).startswith(
        f"{found[1]} phones can learn up to "
    )


def test_a_sitting_is_told_of_a_smaller_crowd_than_default_phones_join() -> None:
    def seated(phones: int) -> Parameters:
        return proposed(sitting.seated(wanted(phones)), any_delta=True)[0]

    advised = next(phones for phones in range(3, 100) if clear(seated(phones)))
    assert advised < 20
    few = verdict(seated(advised - 1))
    assert few.endswith(f"phones can hardly learn anything here; about {advised} would")
    assert verdict(seated(3)).endswith(f"about {advised} would")
    # The same sum by other rules, and other sums by the same, are no sitting.
    by_masks = msgspec.structs.replace(seated(3), summation=SummationName.BELL)
    assert verdict(by_masks).endswith("about 100 would")
    assert verdict(discovery(3, summation=SummationName.TWO_OPERATORS)).endswith("about 100 would")
    counting = statistics_parameters(phones=3, summation=SummationName.TWO_OPERATORS)
    assert verdict(counting).endswith("about 100 would")


def test_a_crowd_that_finds_something_is_told_how_much() -> None:
    assert verdict(discovery(100)) == "100 phones can learn up to 3 of 11 labels here"
    assert verdict(discovery(20_000)) == "20\u202f000 phones can learn all 11 labels here"
    alone = proposed(PhaseOptions(phones=1000, labels=("a",)), any_delta=True)[0]
    assert verdict(alone) == "1\u202f000 phones can learn the one label here"
    local = learning_parameters(phones=4000, label_votes=3, top_global_centroids=10)
    assert verdict(local) == "4\u202f000 phones can name all 10 environments here"


def test_each_kind_of_phase_has_its_own_word() -> None:
    counting = statistics_parameters(phones=20, contacts=1, noise=60.0)
    assert verdict(counting).startswith("20 phones cannot count anything here; about ")
    labelling = labelling_parameters(phones=5, threshold=30.0)
    assert verdict(labelling).startswith("5 phones cannot label anything here; about ")


def test_the_verdict_and_the_bytes_are_short_and_the_rest_is_for_who_asks() -> None:
    words = ("phase", "start", "--phones", "60", "--dry-run", "--server", "http://127.0.0.1:9")
    short, long = earshot(*words), earshot(*words, "--verbose")
    said, sent, kept = short.stdout.splitlines()
    assert said.startswith("60 phones can learn up to 2 of 11 labels here; default phones refuse")
    assert sent.startswith("each phone sends ")
    assert kept.startswith("  all phones together ")
    lines = long.stdout.splitlines()
    assert lines[-1] == said
    assert len(lines) > 15
    assert short.returncode == long.returncode == 1


def test_a_budget_ends_with_the_same_verdict() -> None:
    said = earshot("budget", "--phones", "60").stdout.splitlines()[-2]
    assert said.startswith("60 phones can learn up to 2 of 11 labels here; default phones refuse")
