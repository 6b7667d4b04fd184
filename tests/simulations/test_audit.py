"""What is audited, what an audit catches, and the command."""

from __future__ import annotations

import ast
import inspect
import itertools
import json
import math
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from earshot_client.clustering import DPLloyd
from earshot_client.command import main
from earshot_protocol.errors import InvalidParametersError, WrongStateError
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.discovery import LABELS, rows_of
from earshot_protocol.phases.kinds import KINDS
from earshot_protocol.phases.statistics import HISTOGRAM, StatisticsParameters
from earshot_protocol.privacy import coins, noise
from earshot_protocol.privacy.local_mechanisms import LaplaceLloyd, Selection, SelectionMethod
from earshot_protocol.privacy.mechanisms import GRID, BallotSum, SumMechanism, Unit
from earshot_protocol.privacy.sum_noise import SumNoise
from earshot_protocol.secure_sum.interface import SummationName
from earshot_server.phases.sitting import is_seated
from earshot_simulations.auditing import (
    catalogue,
    contacts,
    faults,
    samplers,
    vectors,
    writing,
)
from earshot_simulations.auditing.ballots import difference_loss, noise_law, vote_finding
from earshot_simulations.auditing.findings import (
    EXACT,
    AuditRole,
    Check,
    Finding,
    Technique,
)
from earshot_simulations.auditing.lloyd import Clustering, sampled_clustering
from earshot_simulations.auditing.losses import Bracket
from earshot_simulations.auditing.neighbours import hierarchy_of
from earshot_simulations.auditing.plans import PHASES, Effort, audit_mechanism, phases
from earshot_simulations.auditing.selection import selection_law
from earshot_simulations.auditing.sum_secrets import audit_secrets

ROOT = Path(__file__).parents[2]
QUICK = Effort(trials=2000, draws=2000, seed=0)


def declared_mechanisms() -> set[str]:
    """Every class of product code that says what it costs; interfaces say it for others."""
    return {
        node.name
        for package in ("protocol", "client", "server", "models", "simulations")
        for path in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef)
        and {"event", "cost"}
        <= {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
        and not {base.id for base in node.bases if isinstance(base, ast.Name)} & {"ABC", "Protocol"}
    }


def finding(**changes: Any) -> Finding:
    measured, method = Bracket(0.9, 0.91), Technique(EXACT, "")
    found = Finding("a vote", Unit.PHONE, 1e-6, 1.0, 1.0, measured, method, subject="ballot-sum")
    return replace(found, **changes)


def test_every_mechanism_that_is_declared_has_an_audit_of_a_phase_that_uses_it() -> None:
    audited = {kind for kinds in catalogue.MECHANISMS.values() for kind in kinds}
    used = {
        type(mechanism)
        for parameters in PHASES.values()
        for mechanism in parameters.plan().mechanisms.values()
    }
    assert audited == used
    assert declared_mechanisms() == {kind.__name__ for kind in audited}


def test_every_kind_of_phase_and_every_method_of_selection_is_audited() -> None:
    assert {type(parameters) for parameters in PHASES.values()} == {
        kind.parameters for kind in KINDS
    }
    methods = {
        mechanism.method
        for parameters in PHASES.values()
        for mechanism in parameters.plan().mechanisms.values()
        if isinstance(mechanism, Selection)
    }
    assert methods == set(SelectionMethod)


def test_every_noise_of_a_sum_is_audited() -> None:
    noises = {
        type(mechanism.entry_noise)
        for parameters in PHASES.values()
        for mechanism in parameters.plan().mechanisms.values()
        if isinstance(mechanism, SumMechanism)
    }
    assert noises == set(get_args(SumNoise))


def test_every_sampler_of_the_protocol_is_audited() -> None:
    drawing = {
        name
        for module in (noise, coins)
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__
        and not name.startswith("_")
        and "random" in inspect.signature(function).parameters
    }
    assert drawing == set(samplers.AUDITED)


def test_a_mechanism_that_nobody_can_audit_is_named() -> None:
    class Unknown:
        pass

    parameters = next(iter(PHASES.values()))
    with pytest.raises(WrongStateError, match="Unknown of 'new step' has no auditor"):
        next(audit_mechanism("new step", Unknown(), parameters, QUICK))  # type: ignore[arg-type]


def test_every_subject_has_a_title() -> None:
    assert writing.TITLES.keys() == catalogue.SUBJECTS.keys()


def test_an_unknown_name_says_what_there_is() -> None:
    with pytest.raises(InvalidParametersError, match="nothing called 'votes' is audited; there"):
        catalogue.audit("votes")


def test_more_measured_than_proven_fails() -> None:
    assert finding().passed
    assert finding().verdict == "holds"
    assert not finding(measured=Bracket(1.01, 1.02)).passed
    assert finding(measured=Bracket(1.01, 1.02)).verdict == "BROKEN"
    assert not finding(library=0.8).passed


def test_a_planted_fault_that_is_not_seen_fails() -> None:
    assert not finding(role=AuditRole.FAULT).passed
    assert finding(role=AuditRole.FAULT).verdict == "MISSED"
    assert finding(role=AuditRole.FAULT, measured=Bracket(1.01, 1.02)).verdict == "caught"
    check = Check("seeds", "32 bytes", "32", True, "", "", AuditRole.FAULT)
    assert not check.passed
    assert replace(check, held=bool(np.False_)).passed


@pytest.mark.parametrize(
    "fault",
    [
        faults.too_long_vector,
        faults.servers_recordings,
        faults.few_shares,
        faults.one_vote,
        faults.one_vote_too_many,
        lambda: faults.half_the_noise(0),
        pytest.param(lambda: faults.half_the_sampled_noise(5000, 0), marks=pytest.mark.slow),
    ],
)
def test_planted_faults_are_caught(fault: Any) -> None:
    caught = fault()
    assert caught.exceeds
    assert caught.measured.low > caught.proven * 1.05


SUMS_OF_LABELS = [name for name in PHASES if PHASES[name].kind == "discovery"]
CHOICES, SPLIT = "secure-sum route, choices", "secure-sum route, choices and kinds"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in (CHOICES, SPLIT) else pytest.mark.slow)
        for name in SUMS_OF_LABELS
    ],
)
def test_the_worst_recordings_of_a_sum_of_labels_cost_what_is_proven_and_hardly_less(
    name: str,
) -> None:
    """With rows for choices or without, whole or split: nothing that phones send is longer."""
    part = PHASES[name].plan().part(LABELS)
    found = list(vectors.worst_transcripts(part, part.mechanism, PHASES[name]))
    assert all(each.passed for each in found)
    measured, distances = found[::2], found[1::2]
    assert [each.unit for each in measured] == [Unit.RECORDING, Unit.PHONE]
    assert all(each.measured.low > 0.9 * each.proven for each in measured)
    assert [each.case.rpartition(" ")[2] for each in distances] == ["recording", "phone"]
    assert all(0.95 * GRID < float(each.found) <= GRID for each in distances)


def test_every_kind_has_every_summation_that_it_can_have() -> None:
    for kind in KINDS:
        found = {each.summation for each in PHASES.values() if type(each) is kind.parameters}
        assert found == set(SummationName), kind.parameters


def test_sums_of_labels_are_audited_with_all_rows_by_all_summations() -> None:
    """With cells before them or alone, as in a sitting; of labels, choices, kinds, or both."""
    found = [PHASES[name] for name in SUMS_OF_LABELS]
    modes = [(each.summation, each.sums > 0, each.hierarchy != b"", each.kinds) for each in found]
    wanted = itertools.product(SummationName, (True, False), (False, True), (1, 2))
    assert set(modes) == set(wanted)
    assert any(is_seated(each) for each in found)
    for each in found:
        hierarchy = hierarchy_of(each)
        assert each.rows == len(rows_of(hierarchy))
        assert each.hierarchy == (hierarchy.digest if each.rows > len(each.labels) else b"")
    assert () in hierarchy_of(PHASES[CHOICES]).groups.values(), "a label alone is alone, too"


def test_a_kind_of_phase_without_a_form_is_named() -> None:
    class Unknown(StatisticsParameters, frozen=True, kw_only=True, tag="unknown"):
        pass

    kind = KINDS[-1]._replace(parameters=Unknown)
    with pytest.raises(WrongStateError, match="no form of Unknown is audited: add one"):
        list(phases([*KINDS, kind]))


def test_faults_of_sums_of_labels_are_caught() -> None:
    *found, by_labels, by_kind, by_most = faults.label_faults()
    by_length, finer_by_length, alone = found
    assert not alone.held
    assert 1.05 < float(alone.found) / GRID < 1.08
    by_length, finer_by_length, by_labels, by_kind, by_most = (
        each.measured.low / each.proven
        for each in (by_length, finer_by_length, by_labels, by_kind, by_most)
    )
    assert by_length > 1.1, "the vector turns around, but for the entry that counts"
    assert finer_by_length > 1.2, "in two rows"
    assert by_labels > 1.3, "√2 of what is allowed"
    assert by_kind > 1.3, "√2 of what is allowed"
    assert by_most > 1.2, "all that a phone sends moves to other rows"


CONFUSION = "contacts by environment, confusion matrix"


@pytest.mark.slow
def test_a_confusion_matrix_is_moved_as_far_as_it_claims_and_faults_of_it_farther() -> None:
    parameters = PHASES[CONFUSION]
    assert isinstance(parameters, StatisticsParameters)
    (mechanism,) = parameters.plan().mechanisms.values()
    found = list(audit_mechanism("histogram", mechanism, parameters, QUICK))
    assert all(each.passed for each in found)
    distances = [each for each in found if isinstance(each, Check) and "distance" in each.case]
    for each, unit in zip(distances, (Unit.RECORDING, Unit.PHONE), strict=False):
        declared = mechanism.sensitivity(unit)  # type: ignore[attr-defined]
        assert 0.99 * declared < float(each.found) <= declared
    for fault in faults.confusion_faults(0):
        assert isinstance(fault, Finding)
        assert fault.exceeds
        assert fault.measured.low > 1.1 * fault.proven


def test_contacts_of_every_label_lie_at_every_place_and_at_none() -> None:
    parameters = PHASES[CONFUSION]
    assert isinstance(parameters, StatisticsParameters)
    part, labels = parameters.plan().part(HISTOGRAM), len(parameters.labels)
    seen = np.zeros((labels, labels))
    for sorts in contacts._data_sets(parameters, np.random.default_rng(0)):
        sent = contacts._contribution(part, parameters, sorts)  # type: ignore[arg-type]
        seen += sent[parameters.count_entries :].reshape(labels, labels) > 0
    assert (seen > 10).all()
    far = contacts._contribution(part, parameters, np.array([2 * parameters.count_entries + 1]))  # type: ignore[arg-type]
    assert np.flatnonzero(far).tolist() == [1]


def test_the_audited_kinds_are_those_of_recordings_that_lie_close_together() -> None:
    split = PHASES[SPLIT]
    kinds = vectors.kinds_of(split)
    assert sorted(set(kinds)) == [0, 1]
    assert vectors.kinds_of(PHASES[CHOICES]) == ()
    *_, (two, _), (three, _) = vectors.worst_labelled(split)
    assert 0.9 < two[0] @ two[1] < 1
    part = split.plan().part(LABELS)
    names = [split.labels[0]] * 3
    rows = vectors.contribution(part, split, three, names, kinds).reshape(-1, 17).any(axis=1)
    assert np.flatnonzero(rows).tolist() == [0, 1], "of one label and both kinds"


def test_short_seeds_of_masks_are_caught_and_whole_ones_are_not() -> None:
    assert [each.held for each in faults.short_secrets()] == [False] * 4
    assert all(each.held for each in audit_secrets())


def test_a_release_without_any_noise_is_caught() -> None:
    assert not faults.raw_counts(0).held


@pytest.mark.slow
def test_a_sound_neighbour_of_each_planted_fault_is_not_called_a_fault() -> None:
    mechanism = BallotSum(0.5, 3, 900)
    law = noise_law(mechanism, 900)
    sound = vote_finding(
        mechanism, "", Unit.PHONE, difference_loss(law, np.ones(3, dtype=np.int64))
    )
    assert not sound.exceeds
    assert not sampled_clustering(faults.smallest_clustering(""), 5000, 0).exceeds


def test_half_the_noise_in_dplloyd_is_invisible_in_its_last_centroids() -> None:
    """What a transcript shows at once, the result hides: an audit of results alone is blind."""
    mechanism = LaplaceLloyd(1.0, 200)
    halved = faults.TwiceTheBudget(3, mechanism)
    generator = np.random.default_rng(3)
    points = generator.uniform(-1, 1, (50, 2))
    more = np.vstack([points, np.ones((1, 2))])
    ends = [
        np.array([halved.cluster(each, generator.bytes).ravel() for _ in range(1500)])
        for each in (more, points)
    ]
    # The best linear test of the last centroids, fitted on half of the runs.
    apart = ends[0][:750].mean(axis=0) - ends[1][:750].mean(axis=0)
    ours, theirs = (each[750:] @ apart for each in ends)
    from earshot_simulations.auditing.sampling import sampled_epsilon

    assert sampled_epsilon(ours, theirs, 1e-6).low <= mechanism.epsilon
    assert faults.half_the_noise(0).measured.low > 1.9 * mechanism.epsilon


def test_transcripts_leave_the_code_that_phones_run_as_it_was() -> None:
    from earshot_client import clustering

    before = (clustering.discrete_laplace, clustering.cluster_sums)
    mechanism = LaplaceLloyd(1.0, 20)
    audited = Clustering("", DPLloyd(2, mechanism), mechanism, Geometry.EUCLIDEAN, 2)
    iterations = audited.transcript(audited.farthest(3), np.random.default_rng(0).bytes)
    assert (clustering.discrete_laplace, clustering.cluster_sums) == before
    assert len(iterations) == DPLloyd(2, mechanism).iterations(2)
    assert [draw.noise.shape for draw in iterations[0].draws] == [(2,), (2, 2)]


@pytest.mark.parametrize("method", SelectionMethod)
def test_laws_of_selections_are_laws_and_prefer_larger_counts(method: SelectionMethod) -> None:
    law = selection_law(method, 0.5, 2)((0, 3, 3))
    assert sum(law.values()) == pytest.approx(1)
    assert law[1, 2] > law[0, 1]
    assert len(law) == 6


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    sys.argv = ["earshot", "audit", *arguments]
    with pytest.raises(SystemExit) as ended:
        main()
    status = ended.value.code
    return (status if isinstance(status, int) else 0), capsys.readouterr().out


@pytest.fixture(autouse=True)
def restored_arguments() -> Iterator[None]:
    before = sys.argv
    yield
    sys.argv = before


def test_the_command_prints_one_json_object(capsys: pytest.CaptureFixture[str]) -> None:
    status, printed = run(capsys, "selection", "--json")
    figures = json.loads(printed)
    assert status == 0
    assert figures["passed"] is True
    assert {each["subject"] for each in figures["findings"]} == {"selection"}
    for each in figures["findings"]:
        assert each["measured_at_least"] <= each["proven"] <= each["claimed"]
        assert each["library"] is None or each["measured_at_least"] <= each["library"]


def test_the_command_writes_a_page_and_prints_a_table(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    status, printed = run(capsys, "secure-sum", "--out", str(tmp_path / "audit"))
    page = (tmp_path / "audit" / "audit.html").read_text("utf-8")
    assert status == 0
    assert "self-mask seeds" in printed
    assert "None of 6 audited claims costs more than is proven." in page
    assert "default-src 'none'" in page
    assert json.loads((tmp_path / "audit" / "audit.json").read_text("utf-8"))["passed"] is True


def test_the_command_fails_when_something_is_broken(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = finding(measured=Bracket(math.inf, math.inf))
    monkeypatch.setitem(catalogue.SUBJECTS, "ballot-sum", lambda effort: iter([broken]))
    status, printed = run(capsys, "ballot-sum", "--json")
    assert status == 1
    assert json.loads(printed)["findings"][0]["measured_at_least"] == "infinite"
    status, printed = run(capsys, "ballot-sum")
    assert status == 1
    assert "1 of 1 claims cost more than is proven" in printed


def test_a_narrow_terminal_cuts_no_number_and_no_verdict(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = finding(claimed=12345.6, proven=12345.6, measured=Bracket(9876.5, 9876.5))
    check = Check("seeds", "32 bytes of everything", "4 bytes", False, "", "", subject="secure-sum")
    writing.show([shown, finding(role=AuditRole.FAULT, unit="replaced teacher"), check])
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80
    for words in ("12,345.6", "9,876.5", "holds", "MISSED", "BROKEN", "32 bytes", "claimed ε"):
        assert words in printed


def test_the_command_names_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    sys.argv = ["earshot", "audit", "nonsense"]
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "nothing called 'nonsense' is audited" in capsys.readouterr().err


def test_the_summary_counts_what_was_found() -> None:
    results = [finding(), finding(role=AuditRole.FAULT, measured=Bracket(2.0, 2.0))]
    assert writing.summary(results) == (
        "None of 1 audited claims costs more than is proven; 1 of 1 planted faults are caught."
    )


BY_ITSELF = "whole-phones"
"""Subject that `test_audit_phones` audits as a whole."""


@pytest.mark.slow
def test_nothing_costs_more_than_is_proven_and_every_fault_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(catalogue.SUBJECTS, BY_ITSELF)
    results = catalogue.audit()
    assert [each for each in results if not each.passed] == []
    assert {each.subject for each in results} == set(catalogue.SUBJECTS)
