"""Campaigns that simulated phones live through."""

from __future__ import annotations

import json
import re
import shlex
import zlib
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from support.campaigns import campaign
from support.command import earshot
from support.esc_folder import write_esc_folder
from support.full_disk import room_for

from earshot_client.phone import Phone
from earshot_client.store.memory import MemoryStore
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.privacy.ledger import Ledger
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.secure_sum.interface import SummationName
from earshot_server.campaigns.campaign import (
    Campaign,
    CampaignBudget,
    ExpectedContacts,
    RepeatedDiscovery,
    SumOptions,
)
from earshot_server.campaigns.plan import planned
from earshot_server.campaigns.slots import Slot, SlotState, phase_identifier
from earshot_simulations.campaigns import simulation
from earshot_simulations.campaigns.factors import read_factors
from earshot_simulations.campaigns.findings import CampaignRun
from earshot_simulations.campaigns.kept import KeptCampaign
from earshot_simulations.campaigns.report import _newest, write
from earshot_simulations.campaigns.settings import CampaignSettings, CampaignSummation
from earshot_simulations.campaigns.simulation import simulate_campaign
from earshot_simulations.engine.interface import HeardPoints
from earshot_simulations.populations.sound_folder import SoundFolder

LABELS = ("a", "b", "c", "d")


def small(**changes: Any) -> Campaign:
    """Three weeks of 120 phones at four places, without a map."""
    usual: dict[str, Any] = {
        "weeks": 3,
        "labels": LABELS,
        "expected": ExpectedContacts(phones=120),
        "discovery": None,
    }
    return campaign(**(usual | changes))


def settings(**changes: Any) -> CampaignSettings:
    """Settings of a fast simulation."""
    usual: dict[str, Any] = {"data": "blobs", "pool": 50, "jobs": 1, "turnover": 0.03}
    return CampaignSettings(**(usual | changes))


def told(run: CampaignRun) -> dict[str, Any]:
    """A run but for its time and memory."""
    plain = run.plain()
    return {name: each for name, each in plain.items() if name not in ("seconds", "peak_memory_mb")}


def compressed(content: object) -> bytes:
    return zlib.compress(msgspec.msgpack.encode(content))


def check_noise(run: CampaignRun) -> None:
    """What was published is the exact sum of the phones that came, and noise."""
    apart = [
        (np.array(week.published) - np.array(week.exact)) / week.deviation for week in run.weeks
    ]
    assert np.abs(apart).max() < 4.5
    assert 0.5 < float(np.std(apart)) < 1.5


def test_published_counts_are_those_of_the_phones_that_came_and_noise() -> None:
    run = simulate_campaign(small(weeks=2), settings())
    check_noise(run)
    assert [slot.state for slot in run.slots] == [SlotState.PUBLISHED] * 2
    for week, slot in zip(run.weeks, run.slots, strict=True):
        assert slot.result is not None
        assert slot.result.phones == week.phones < slot.enrolled == 120
        assert sum(week.true) < sum(week.everybody)
        identifier = phase_identifier(run.plan.digest, slot.planned.kind, week.number, 1)
        assert slot.phase == identifier.hex()
    assert run.notes == ("There was no map: contacts without a label are unknown.",)
    assert run.accuracy.unknown == pytest.approx(0.7, abs=0.1)


def test_ledgers_say_what_the_plan_says() -> None:
    run = simulate_campaign(small(), settings(dropout=0.0))
    assert {each.unit for each in run.spent} == {Unit.PHONE, Unit.RECORDING}
    for each in run.spent:
        assert each.least == each.median == each.most == each.planned


def test_a_phone_that_vanishes_may_have_paid_and_pays_no_more() -> None:
    run = simulate_campaign(small(weeks=2), settings(turnover=0.0))
    for each in run.spent:
        assert each.least < each.most == each.planned
        assert each.phones == 120


def test_new_phones_have_stores_of_their_own_and_all_leave_a_phase_that_is_over(
    tmp_path: Path,
) -> None:
    run = simulate_campaign(small(), settings(dropout=0.0, turnover=0.1), tmp_path)
    found = KeptCampaign(tmp_path, run.plan, run.settings).read(dict[str, Any])
    assert found is not None
    stores = [MemoryStore.from_bytes(state) for state in found[1].values()]
    assert len(stores) == 120
    weeks = Counter(len(Ledger(store.ledger()).days) for store in stores)
    assert weeks[3] > run.spent[0].phones > 60
    assert weeks[1] > 3
    assert weeks[2] > 3
    for store in stores:
        assert Phone(store, HeardPoints("lifted-blobs", 3)).phase is None


def test_an_interrupted_simulation_goes_on_bit_for_bit(tmp_path: Path) -> None:
    def stop(slot: Slot) -> None:
        if slot.planned.number == 2:
            raise KeyboardInterrupt

    whole = simulate_campaign(small(), settings())
    with pytest.raises(KeyboardInterrupt):
        simulate_campaign(small(), settings(), tmp_path, after_phase=stop)
    ran: list[int] = []
    again = simulate_campaign(
        small(), settings(), tmp_path, after_phase=lambda slot: ran.append(slot.planned.number)
    )
    assert ran == [3]
    assert told(again) == told(whole)
    once_more = simulate_campaign(small(), settings(), tmp_path)
    assert told(once_more) == told(whole)


def test_a_phase_writes_what_it_changed_and_all_phones_come_back(tmp_path: Path) -> None:
    """Phones leave from week to week, and others have their numbers."""
    kept: list[dict[int, bytes]] = []

    class Noted(KeptCampaign):
        def keep(self, state: Any, phones: dict[int, bytes]) -> None:
            kept.append(phones)
            super().keep(state, phones)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulation, "KeptCampaign", Noted)
        run = simulate_campaign(small(weeks=4), settings(turnover=0.1), tmp_path)
    files = [tmp_path / "campaign.state" / str(number) for number in range(4)]
    assert files[3].stat().st_mode & 0o777 == 0o600
    content = zlib.decompress(files[3].read_bytes())
    written = msgspec.msgpack.decode(content, type=tuple[Any, Any, dict[int, Any]])[2].values()
    before = Counter(entries for entries, _ in written)
    assert before[6] > before[4] > before[0] > 3
    assert {len(ledger) for _, (_, ledger, _) in written} <= {0, 2}
    for phones in reversed(kept):
        found = KeptCampaign(tmp_path, run.plan, run.settings).read(dict[str, Any])
        assert found is not None
        assert found[1] == phones
        files.pop().unlink()


def test_another_simulation_in_the_folder_is_refused_by_name(tmp_path: Path) -> None:
    simulate_campaign(small(weeks=1), settings(), tmp_path)
    with pytest.raises(InvalidInputError, match=r"another seed \(1, now 2\)"):
        simulate_campaign(small(weeks=1), settings(seed=2), tmp_path)
    with pytest.raises(InvalidInputError, match="another campaign"):
        simulate_campaign(small(weeks=2), settings(), tmp_path)
    kept = tmp_path / "campaign.state" / "0"
    whole = kept.read_bytes()
    made_by, state, phones = msgspec.msgpack.decode(
        zlib.decompress(whole), type=tuple[Any, Any, dict[int, Any]]
    )
    foreign = (made_by, {**state, "slots": 3}, phones)
    lost = (made_by, state, {**phones, 0: (1, phones[0][1])})
    for damaged in (b"\x00", whole[:-1], *map(compressed, (foreign, lost))):
        kept.write_bytes(damaged)
        with pytest.raises(InvalidInputError, match="is damaged"):
            simulate_campaign(small(weeks=1), settings(), tmp_path)


@pytest.mark.slow
def test_it_does_not_depend_on_the_number_of_processes() -> None:
    one, two = (told(simulate_campaign(small(), settings(jobs=jobs))) for jobs in (1, 2))
    assert one.pop("settings") != two.pop("settings")
    assert one == two


def matrices(run: CampaignRun) -> list[int]:
    """Entries of each phase's confusion matrix."""
    return [0 if slot.result is None else len(slot.result.confusion) for slot in run.slots]


@pytest.mark.slow
def test_a_discovery_of_the_plan_names_contacts() -> None:
    whole = small(
        discovery=RepeatedDiscovery(every_weeks=2, retries=0),
        budget=CampaignBudget(continues=False),
        expected=ExpectedContacts(phones=300),
        sum=SumOptions(confusion=True),
    )
    run = simulate_campaign(whole, settings(dropout=0.0, turnover=0.0))
    check_noise(run)
    maps = [slot.map for slot in run.slots]
    first, second = (slot.phase for slot in run.slots if slot.planned.kind == "discovery")
    assert maps == [first, first, first, second, second]
    assert matrices(run) == [0, 16, 0, 0, 16]
    assert run.accuracy.right_names is not None
    assert run.accuracy.right_names > 0.6
    assert all(week.has_map for week in run.weeks)
    for each in run.spent:
        assert each.least == each.most == pytest.approx(each.planned, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("confusion", [True, False])
def test_the_map_of_the_file_is_found_by_others(confusion: bool) -> None:
    asked = SumOptions(confusion=confusion)
    whole = small(map="ab" * 16, expected=ExpectedContacts(phones=300), sum=asked)
    run = simulate_campaign(whole, settings(dropout=0.0))
    assert matrices(run) == [16 * confusion, 0, 0]
    assert {slot.map for slot in run.slots} == {"ab" * 16}
    for each in run.spent:
        assert each.least == each.most == each.planned
    assert "is not in these ledgers" in " ".join(run.notes)


def test_the_campaign_before_is_not_simulated_and_the_run_says_so() -> None:
    before = small(begins=date(2026, 12, 7), weeks=4)
    run = simulate_campaign(small(weeks=1, follows=before), settings(dropout=0.0))
    assert any("was not simulated" in note for note in run.notes)
    assert run.plan.digest != planned(small(weeks=1)).digest


@pytest.mark.slow
def test_every_summation_adds_up() -> None:
    both = small(weeks=2, sum=SumOptions(summation=SummationName.TWO_OPERATORS))
    for whole in (small(weeks=2), both):
        run = simulate_campaign(whole, settings(summation=CampaignSummation.REAL, dropout=0.05))
        check_noise(run)
        assert run.refusals == {}
        for each in run.spent:
            assert each.most == each.planned


@pytest.mark.slow
@pytest.mark.parametrize("summation", [SummationName.BELL, SummationName.TWO_OPERATORS])
def test_real_sums_have_a_confusion_matrix(summation: SummationName) -> None:
    asked = SumOptions(summation=summation, confusion=True)
    whole = small(weeks=1, map="ab" * 16, sum=asked)
    run = simulate_campaign(whole, settings(summation=CampaignSummation.REAL, dropout=0.05))
    check_noise(run)
    assert matrices(run) == [16]
    for each in run.spent:
        assert each.most == each.planned


@pytest.mark.slow
def test_a_simulation_interrupted_after_a_matrix_goes_on_bit_for_bit(tmp_path: Path) -> None:
    def stop(slot: Slot) -> None:
        if slot.planned.confusion:
            raise KeyboardInterrupt

    whole = small(map="ab" * 16, sum=SumOptions(confusion=True))
    at_once = simulate_campaign(whole, settings())
    with pytest.raises(KeyboardInterrupt):
        simulate_campaign(whole, settings(), tmp_path, after_phase=stop)
    again = simulate_campaign(whole, settings(), tmp_path)
    assert told(again) == told(at_once)
    assert matrices(again) == [16, 0, 0]


def test_phones_that_refuse_are_counted_with_their_reason() -> None:
    run = simulate_campaign(small(weeks=1, expected=ExpectedContacts(phones=50)), settings())
    (slot,) = run.slots
    assert slot.state is SlotState.FAILED
    assert slot.result is None
    assert run.accuracy.weeks == 0
    ((reason, count),) = run.refusals.items()
    assert "least_phones" in reason
    assert 40 < count <= 50
    assert msgspec.json.encode(run.plain())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dropout": 0.3}, "dropout=0.3: the campaign's phases withstand at most 0.2"),
        ({"labelled": 1.5}, "labelled"),
        ({"phones": 2}, "phones"),
        ({"drift": -1.0}, "drift"),
        ({"encoder": "contrast-3"}, "blobs are points already"),
    ],
)
def test_wrong_settings_are_refused_by_name(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParametersError, match=message):
        simulate_campaign(small(), settings(**changes))


def test_ideal_sums_stand_in_for_one_server_alone() -> None:
    whole = small(sum=SumOptions(summation=SummationName.TWO_OPERATORS))
    with pytest.raises(InvalidParametersError, match="choose summation=real"):
        simulate_campaign(whole, settings())


def test_sound_of_places_that_are_not_counted_is_refused() -> None:
    with pytest.raises(InvalidParametersError, match="add rain, traffic, siren"):
        simulate_campaign(small(), settings(data="soundscapes", pool=1))


def test_the_page_has_the_truth_beside_each_figure_of_the_newest_week() -> None:
    run = simulate_campaign(small(weeks=6), settings(turnover=0.0))
    *places, unknown, total = _newest(run)
    last, before = run.weeks[-1], run.weeks[1:-1]
    for number, (place, row) in enumerate(zip(LABELS, places, strict=True)):
        true = last.true[number]
        rate = true / last.phones
        earlier = sum(week.true[number] for week in before) / sum(week.phones for week in before)
        assert row[0] == place
        assert row[2] == f"{100 * true / sum(last.true):.1f} %"
        assert float(row[4]) == pytest.approx(rate, rel=0.01)
        assert row[6] == f"{100 * (rate / earlier - 1):+.1f} %".replace("-", "−")
    assert (unknown[0], unknown[2], unknown[4], unknown[6]) == ("Unknown", "–", "–", "–")
    assert (total[0], total[2]) == ("All contacts", "–")
    assert float(total[4]) == pytest.approx(sum(last.true) / last.phones, rel=0.01)
    first = simulate_campaign(small(weeks=1), settings())
    assert [row[6] for row in _newest(first)] == ["–"] * 6


def test_a_run_is_written(tmp_path: Path) -> None:
    run = simulate_campaign(small(weeks=1), settings())
    write(run, tmp_path)
    held = json.loads((tmp_path / "result.json").read_bytes())
    assert held["digest"] == planned(small(weeks=1)).digest
    assert held["weeks"][0]["true"] == list(run.weeks[0].true)
    page = (tmp_path / "report.html").read_text("utf-8")
    assert all(f">{name}<" in page for name in ("Contacts per phone", *LABELS))
    published = (tmp_path / "series.csv").read_text("utf-8").splitlines()
    assert len(published) == 1 + len(LABELS) + 2
    assert held["accuracy"]["smoothed_error"] is not None
    assert "1 of 1 week counted over 120 phones" in page
    assert "1 phase: 1 week and 0 maps" in page
    with (
        room_for(1000),
        pytest.raises(InvalidInputError, match=r": cannot be written .*make room"),
    ):
        write(run, tmp_path)
    assert json.loads((tmp_path / "result.json").read_bytes()) == held


GUIDE = Path(__file__).parents[2] / "docs" / "campaign-simulation.md"


@pytest.mark.slow
def test_the_commands_of_the_guide_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = re.findall(r"```(\w+)\n(.*?)```", GUIDE.read_text("utf-8"), flags=re.DOTALL)
    held = dict(reversed(blocks))
    (tmp_path / "campaign.toml").write_text(held["toml"], "utf-8")
    command, *words = shlex.split(held["sh"])
    assert command == "earshot"
    monkeypatch.chdir(tmp_path)
    run = earshot(*words)
    assert run.returncode == 0, run.stderr
    assert re.search(r"^weeks counted +4 of 4$", run.stdout, re.MULTILINE)
    found = json.loads((tmp_path / "year" / "result.json").read_bytes())
    assert [slot["planned"]["kind"] for slot in found["slots"]][:2] == ["discovery", "statistics"]
    exec(compile(held["python"], "guide", "exec"), {})  # noqa: S102 - our own page
    assert capsys.readouterr().out.startswith("1 2")
    factors = tmp_path / "contacts.csv"
    factors.write_text(held["text"], "utf-8")
    places = ("street", "shop", "office", "home")
    assert read_factors(factors, 4, places)[0].tolist() == [1, 1, 0, 1]


def test_phones_hear_all_clips_of_a_folder_of_one_fold(tmp_path: Path) -> None:
    """Where nothing is judged by held-out sound, a single fold of ESC, or one clip, is enough."""
    folder = write_esc_folder(tmp_path, ("rain", "traffic"), clips=1, seconds=1)
    with pytest.raises(InvalidInputError, match="nothing can be held out"):
        SoundFolder(folder, 5, 5, 0.5, 1)
    with SoundFolder(folder, 5, 5, 0.5, 1, hold_out=False) as population:
        assert not len(population.held_out().points)
        heard = [population.recordings(phone).points for phone in range(5)]
        assert len(np.unique(np.concatenate(heard), axis=0)) == 2
    run = simulate_campaign(
        small(weeks=1, labels=("rain", "traffic")), settings(data=str(folder), labelled=1.0)
    )
    assert all(run.weeks[0].true)
