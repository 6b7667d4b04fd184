"""An attack of one's own, besides those that settings name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.own_things import LOCAL, SMALL, Crowd, Liars, raising
from support.simulated import decided

from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.phases.learning import LocalCentroids
from earshot_protocol.phases.plan import Plan
from earshot_protocol.wire import Answer
from earshot_simulations import (
    Adversary,
    Attack,
    OwnCodeError,
    PolicyChoice,
    Recordings,
    SummationChoice,
    result,
    simulate,
)
from earshot_simulations.phases.labelling import LabellingSettings
from earshot_simulations.phases.run import render

SUMS = replace(SMALL, phones=30, scenes=3)
ROUTE = replace(LOCAL, phones=30, scenes=3)


def attack(**methods: Any) -> Attack:
    return type("Mine", (Liars,), methods)()


@pytest.mark.usefixtures("no_pictures")
def test_an_attack_is_made_by_its_phones_and_said() -> None:
    run = simulate(SUMS, attack=Liars())
    assert run.adversary is not None
    assert (run.adversary.phones, run.adversary.controlled) == ({"Liars": 3}, 3)
    assert run.adversary.published is None
    own = {"attack": {"class": "support.own_things.Liars", "key": "last label, 3"}}
    assert result(run)["provenance"]["own"] == own
    page = render(run)
    assert "An attack of its own was among" in page
    assert "names no place that it wants published" in page


def test_written_anew_a_built_in_one_does_the_same() -> None:
    """The same phones, by the same protocol: all that the seed decides comes out alike."""
    settings = replace(SUMS, adversary=Adversary(one_label=0.2))
    built_in = simulate(settings)
    members = sorted(Adversary(one_label=0.2).members(30, SUMS.seed)["one_label"])
    own = simulate(SUMS, attack=attack(phones=lambda self, count, seed: members))
    assert own.found.global_centroids.tolist() == built_in.found.global_centroids.tolist()
    assert own.found.lengths == built_in.found.lengths
    assert own.found.global_centroids.tolist() != simulate(SUMS).found.global_centroids.tolist()


def test_it_is_made_besides_those_of_the_settings_and_after_them() -> None:
    both = simulate(replace(ROUTE, adversary=Adversary(poisoning=0.1)), attack=Liars())
    assert both.adversary is not None
    assert both.adversary.phones == {"poisoning": 3, "Liars": 3}
    assert list(both.adversary.phones) == ["poisoning", "Liars"]
    assert both.adversary.published is not None


def test_a_phone_publishes_adds_and_sends_what_the_attack_says() -> None:
    seen: dict[str, Any] = {}

    def published(self: Attack, phone: int, centroids: Any) -> Any:
        seen["published"] = centroids.shape
        return np.full(centroids.shape, 0.25)

    def added(self: Attack, phone: int, values: Any, parameters: Any) -> Any:
        seen["added"] = values.dtype, parameters.phones, parameters.bound > 0
        return np.zeros_like(values)

    def sent(self: Attack, phone: int, answer: Answer) -> Answer | bytes:
        seen.setdefault("sent", set()).add(phone)
        return b"nothing" if phone == 2 else answer

    mine = attack(
        published=published,
        added=added,
        sent=sent,
        # Nobody else, as one phone's message is refused.
        vanishing=lambda self, others, plan: dict.fromkeys(others, ()),
        target=np.array([0.25, 0.25]),
    )
    run = simulate(replace(ROUTE, phones=60, dropout=0.1), attack=mine)
    assert seen == {
        "published": (ROUTE.top_local_centroids, 2),
        "added": (np.dtype(np.int64), 60, True),
        "sent": {0, 1, 2},
    }
    assert run.interrupted is None
    assert (run.found.local_centroids == 0.25).all(axis=1).sum() == 2 * ROUTE.top_local_centroids
    assert run.adversary is not None
    assert run.adversary.refused > 0
    assert run.adversary.published is not None
    assert any("not a message" in note for note in run.notes)


def test_who_vanishes_is_the_attack_s(monkeypatch: pytest.MonkeyPatch) -> None:
    def vanishing(
        self: Attack, others: Mapping[str, tuple[int, ...]], plan: Plan
    ) -> Mapping[str, Any]:
        last = plan.steps[-1].name
        return {**others, last: [np.int64(4), 5]}

    run = simulate(replace(ROUTE, dropout=0.1), attack=attack(vanishing=vanishing))
    assert run.steps[-1].dropped == (4, 5)
    assert run.survivors < 30


def test_a_labelling_phase_is_attacked_too() -> None:
    settings = LabellingSettings(
        phones=30,
        samples=5,
        policy=PolicyChoice.ANYTHING,
        summation=SummationChoice.IDEAL,
        jobs=1,
    )
    run = simulate(settings, attack=Liars())
    assert run.adversary is not None
    assert run.adversary.phones == {"Liars": 3}


@pytest.mark.slow
def test_it_is_the_same_in_other_processes() -> None:
    alone, spread = (simulate(replace(SUMS, jobs=jobs), attack=Liars()) for jobs in (1, 2))
    assert decided(alone) == decided(spread)


# ---------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("method", "call"),
    [
        ("heard", "heard of phone 0"),
        ("added", "added of phone 0"),
        ("sent", "sent of phone 0"),
        ("published", "published of phone 0"),
    ],
)
def test_an_attack_that_raises_ends_the_run_by_name(
    method: str, call: str, jobs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    mine = attack(**{method: raising}, phones=lambda self, count, seed: [0])
    with pytest.raises(OwnCodeError) as refused:
        simulate(replace(ROUTE, jobs=jobs), attack=mine)
    told = str(refused.value)
    assert told.startswith(f"attack Mine: {call} raised ZeroDivisionError: half of nothing")
    step = "centroid vote: advertise keys" if method == "added" else "local centroids"
    assert told.endswith(f"(in the step '{step}')")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("method", ["phones", "vanishing"])
def test_one_that_raises_before_the_first_step_is_named_too(method: str) -> None:
    with pytest.raises(OwnCodeError, match=rf"attack Mine: {method}.* raised ZeroDivisionError"):
        simulate(ROUTE, attack=attack(**{method: raising}))


def heard(**changes: Any) -> Any:
    return lambda self, phone, recordings: recordings._replace(**changes)


@pytest.mark.parametrize(
    ("methods", "says"),
    [
        ({"phones": lambda *given: None}, "phones.* raised TypeError"),
        ({"phones": lambda *given: [1.5]}, "a phone's number is a whole number, not 1.5"),
        ({"heard": lambda *given: None}, r"attack Mine: heard\(0\) returned None"),
        ({"heard": heard(labels=np.array([9]))}, r"attack Mine: heard\(0\)\.labels has shape"),
        ({"heard": heard(points=np.ones((3, 2)) * np.inf)}, "is not finite"),
        ({"published": lambda *given: np.zeros((1, 2))}, r"published has shape \(1, 2\): must be"),
        ({"published": lambda self, phone, own: own * np.nan}, "published of phone 0 raised"),
        ({"added": lambda self, phone, own, sums: own[1:]}, "what phone 0 adds to a sum cannot be"),
        ({"added": lambda self, phone, own, sums: own + 0.5}, "takes integers"),
        ({"added": lambda self, phone, own, sums: own + 10**6}, "what phone 0 adds to a sum"),
        ({"sent": lambda *given: 3}, "sent of phone 0 raised"),
        ({"vanishing": lambda *given: {"never": ()}}, "vanishing names the steps never: must be"),
        ({"vanishing": lambda self, others, plan: dict.fromkeys(others, 3)}, "vanishing raised"),
        (
            {"vanishing": lambda self, others, plan: dict.fromkeys(others, (-1,))},
            "phone -1: must",
        ),
        (
            {"vanishing": lambda self, others, plan: dict.fromkeys(others, (999,))},
            "phone 999: must",
        ),
        ({"target": np.zeros(3)}, r"target has shape \(3,\): must be \(2,\)"),
        ({"target": np.full(2, np.nan)}, "target: row 0 is not finite"),
        ({"target": [[1.0], [1.0, 2.0]]}, "target is not an array"),
    ],
)
def test_what_cannot_be_used_is_named(methods: dict[str, Any], says: str) -> None:
    with pytest.raises(OwnCodeError, match=says):
        simulate(ROUTE, attack=attack(**methods))


def test_phones_that_there_are_not_are_refused() -> None:
    with pytest.raises(InvalidParametersError, match="names phone 30: must be 0 to 29"):
        simulate(ROUTE, attack=attack(phones=lambda *given: [30]))


@pytest.mark.parametrize("name", [5, "a\nb", "x" * 65])
def test_a_name_that_a_result_cannot_have_is_refused(name: Any) -> None:
    with pytest.raises(InvalidParametersError, match="attack Mine: name="):
        simulate(ROUTE, attack=attack(name=name))


def test_the_name_of_an_attack_that_the_settings_make_is_refused() -> None:
    settings = replace(ROUTE, adversary=Adversary(one_label=0.1))
    with pytest.raises(InvalidParametersError, match="attack one_label: the settings make"):
        simulate(settings, attack=attack(name="one_label"))


def test_an_object_that_is_no_attack_is_told_what_one_has() -> None:
    with pytest.raises(InvalidParametersError, match="attack Crowd: has no heard and no published"):
        simulate(ROUTE, attack=type("Crowd", (), {"phones": lambda *given: []})())
    with pytest.raises(TypeError, match="phones"):
        type("Mine", (Attack,), {})()


def test_honest_is_the_default_of_each_method() -> None:
    honest = type("Honest", (Attack,), {"phones": lambda self, count, seed: range(count)})
    one, other = simulate(ROUTE, attack=honest()), simulate(ROUTE)
    assert one.found.local_centroids.tolist() == other.found.local_centroids.tolist()
    assert one.found.label_votes.tolist() == other.found.label_votes.tolist()
    assert [step.bytes_up for step in one.steps] == [step.bytes_up for step in other.steps]


def test_what_is_heard_is_of_the_population_s_own_labels() -> None:
    def relabelled(self: Attack, phone: int, recordings: Recordings) -> Recordings:
        return recordings._replace(labels=np.full(len(recordings.labels), 3))

    with pytest.raises(OwnCodeError, match="an index into the 3 labels"):
        simulate(SMALL, population=Crowd(), attack=attack(heard=relabelled))


def test_an_answer_may_be_changed() -> None:
    kinds = set()

    def sent(self: Attack, phone: int, answer: Answer) -> Answer:
        kinds.add(type(answer))
        return answer

    simulate(ROUTE, attack=attack(sent=sent))
    assert LocalCentroids in kinds
    assert len(kinds) > 3
