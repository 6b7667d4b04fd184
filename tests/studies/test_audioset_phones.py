"""Phones as teachers: each learns as by itself, and both tallies count the same ballots."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.linear_model import Ridge
from support.reproduced import reproduced

from earshot_models.votes.output_ballots import Outputs
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.voting.vote_sums import VoteSum
from earshot_studies.kit.mixtures.embedding import Part
from earshot_studies.muschiol import phones as audioset_phones
from earshot_studies.muschiol.phones import CURATOR, LAW, NO_NOISE, REAL, PhonesPlan, measure
from earshot_studies.muschiol.taggers import phones
from earshot_studies.muschiol.taggers.phones import PhoneOutputs, answers, ballots
from earshot_studies.muschiol.tagging.metrics import scores


def test_each_phone_learns_what_a_ridge_regression_of_its_own_does() -> None:
    generator = np.random.default_rng(1)
    features, asked = generator.normal(size=(4, 9, 5)), generator.normal(size=(7, 5))
    truth = generator.integers(0, 2, (4, 9, 3))
    truth[2, :, 1] = 0
    found = answers(features, truth, asked, 2.5)
    for phone in range(4):
        model = Ridge(alpha=2.5).fit(features[phone], truth[phone])
        np.testing.assert_allclose(found[phone], np.clip(model.predict(asked), 0, 1), atol=1e-9)
    np.testing.assert_allclose(found[2, :, 1], 0, atol=1e-9)  # what it never met it never names


def test_a_phone_votes_for_its_likeliest_labels_and_no_more() -> None:
    likely = np.random.default_rng(2).random((3, 4, 6))
    cast = ballots(likely, 2)
    assert (cast.sum(axis=-1) == 2).all()
    best = np.sort(likely, axis=-1)[..., -2:-1]
    np.testing.assert_array_equal(cast, likely >= best)
    assert ballots(np.zeros((1, 1, 4)), 3).tolist() == [[[1, 1, 1, 0]]]
    with pytest.raises(InvalidParametersError, match="most"):
        ballots(likely, 7)


def made_up(material: Any, count: int, **more: Any) -> PhoneOutputs:
    """Phones that are mostly right, of a study that mixes nothing."""
    generator = np.random.default_rng(material)
    truth = [(generator.random((rows, 5)) < 0.35).astype(np.int8) for rows in (40, 30, 60)]
    for each in truth:
        each[0], each[1] = 0, 1
    heard = [part + generator.normal(0, 0.7, part.shape) for part in truth]
    parts = [Part(x.astype(np.float32), y) for x, y in zip(heard, truth, strict=True)]
    said = 1 / (1 + np.exp(3 - 6 * truth[1] + generator.normal(0, 3, (count, 30, 5))))
    return PhoneOutputs(said.astype(np.float32), *parts)


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PhonesPlan:
    class Nothing:
        def __init__(self, *given: Any) -> None:
            pass

        def material(self, seed: int) -> int:
            return seed

    monkeypatch.setattr(audioset_phones, "TaggerStudy", Nothing)
    monkeypatch.setattr(audioset_phones, "crowd", made_up)
    return PhonesPlan(
        tmp_path, tmp_path, 60, 2, 30, epsilon=20.0, delta=1e-4, most=2, seeds=2, real=1
    )


def test_noise_is_the_least_that_keeps_the_budget() -> None:
    """Of 500 samples of 3,000 phones: ε = 1, δ = 10⁻⁶, three votes, left out.

    By the papers' conversion 207 votes are needed, by a tighter one 176; the exact law of Gaussian
    noise (Balle and Wang, ICML 2018) would do with 164.
    """
    plan = PhonesPlan(Path(), Path())
    sigma = plan.deviation(20)
    assert sigma == pytest.approx(175.6, rel=2e-3)
    length = math.sqrt(500 * 3)
    rho = (math.sqrt(math.log(1e6) + 1) - math.sqrt(math.log(1e6))) ** 2
    assert length / math.sqrt(2 * rho) == pytest.approx(207, abs=0.5)

    def delta(deviation: float) -> float:
        far = length / deviation
        return float(norm.cdf(far / 2 - 1 / far) - math.e * norm.cdf(-far / 2 - 1 / far))

    assert delta(sigma) < 1e-6 < delta(0.93 * sigma)
    survivors = plan.participants.honest_survivors
    for scale, within in ((1.0, True), (0.998, False)):
        summed = VoteSum(Outputs(20, 3), 500, scale * sigma, 1e-6, survivors)
        assert (summed.cost(Unit.PHONE).epsilon <= 1.0) == within


@pytest.mark.slow
def test_both_tallies_count_the_same_ballots(plan: PhonesPlan) -> None:
    rows = {str(row["tally"]): row for row in measure(plan, 1)}
    people = made_up(1, 60)
    cast = ballots(people.probabilities, 2)
    shares = cast.mean(axis=0)
    exact = scores(people.queries.truth, shares > 0.2, shares)
    assert rows[NO_NOISE]["answers_map"] == pytest.approx(exact.mean_average_precision)
    assert rows[NO_NOISE]["answers_macro_f1"] == pytest.approx(exact.macro_f1)
    for name in (CURATOR, REAL):
        assert float(rows[name]["answers_map"]) > float(rows[NO_NOISE]["answers_map"]) - 0.15
        assert float(rows[name]["student_map"]) > 0.5
    real = rows[REAL]
    assert float(real["kb_up"]) > 1
    # Of 60, 3 go, each in one of four rounds; after its input, a phone still counts.
    assert 57 <= float(real["survivors"]) <= 60
    assert real["cpu_seconds"] == pytest.approx(
        float(real["phone_cpu_ms"]) * 60 / 1000 + float(real["server_cpu_seconds"]), rel=0.1
    )
    (law,) = (row for row in measure(plan, 2) if row["tally"] == LAW)
    assert float(law["student_map"]) > 0.5
    journal = (plan.place("sum", 1, "") / "journal.jsonl").read_text().splitlines()
    assert json.loads(journal[0])["labelling"]["name"] == "gnthreshold"


def test_the_law_of_the_sum_is_that_of_the_sum(plan: PhonesPlan) -> None:
    """Noise of those who stay, n/n' as much, over counts of those who stay."""
    cast = np.ones((60, 200, 50), dtype=np.int8)
    found = audioset_phones._ideal(plan, cast, 8.0, np.random.default_rng(3)) * 57
    noise = found - 57
    variance = 64 * 57 / plan.participants.honest_survivors
    assert noise.var() == pytest.approx(variance, rel=5 * (2 / noise.size) ** 0.5)
    assert abs(noise.mean()) < 5 * (variance / noise.size) ** 0.5


def test_plans_that_protect_nobody_are_refused(tmp_path: Path) -> None:
    for given, message in (
        ({"delta": 1e-4}, "must be below 1/120000"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"phones": 2}, "phones=2"),
        ({"real": 6}, "real"),
        ({"threshold": 1.5}, "threshold"),
    ):
        with pytest.raises(InvalidParametersError, match=message):
            PhonesPlan(tmp_path, tmp_path, **given)  # type: ignore[arg-type]
    with pytest.raises(InvalidParametersError, match="give a larger delta"):
        PhonesPlan(tmp_path, tmp_path, epsilon=1e-6, delta=1e-12).deviation(20)


def test_too_many_phones_for_the_mixtures_are_refused() -> None:
    class Material:
        pool = range(10)

    with pytest.raises(InvalidParametersError, match="there can be at most 5"):
        phones.crowd(Material(), 6)  # type: ignore[arg-type]


@pytest.mark.slow
def test_the_command_leaves_files_and_goes_on(plan: PhonesPlan, tmp_path: Path) -> None:
    out = tmp_path / "out"
    sizes = ("--phones", 60, "--samples", 30, "--epsilon", 20, "--seeds", 2, "--real", 1)
    reproduced("audioset-phones", out, "--data", tmp_path, *sizes)
    note = (out / "audioset-phones.md").read_text(encoding="utf-8")
    assert "# 60 phones as teachers" in note
    assert "s of CPU in all" in note
    first = (out / "audioset-phones.csv").read_text(encoding="utf-8")
    assert (first.count(f"\n{REAL},"), first.count(LAW)) == (1, 1)
    assert (out / "audioset-phones.png").stat().st_size > 10_000
    reproduced("audioset-phones", out, "--data", tmp_path, *sizes, "--overwrite")
    assert (out / "audioset-phones.csv").read_text(encoding="utf-8") == first, "read again"


@pytest.mark.slow
def test_other_settings_or_other_sound_in_the_same_folder_are_measured(
    plan: PhonesPlan, tmp_path: Path
) -> None:
    def table(data: Path, epsilon: float) -> str:
        sizes = ("--phones", 60, "--samples", 30, "--epsilon", epsilon, "--seeds", 1)
        reproduced("audioset-phones", tmp_path / "out", "--data", data, *sizes, "--overwrite")
        return (tmp_path / "out" / "audioset-phones.csv").read_text(encoding="utf-8")

    first = table(tmp_path, 20)
    dearer = table(tmp_path, 25)
    (tmp_path / "other" / "esc10").mkdir(parents=True)
    (tmp_path / "other" / "esc10" / "1-1-0.wav").touch()
    other = table(tmp_path / "other", 20)
    assert len({first, dearer, other}) == 3
    assert table(tmp_path, 20) == first
