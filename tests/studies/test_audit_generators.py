"""Generators under attack in an audit: what passes, what fails, and that attacks see something."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from earshot_simulations.auditing.findings import Finding
from earshot_simulations.membership.game import learned_from
from earshot_simulations.membership.planted import repeating
from earshot_simulations.membership.suite import ATTACKS, AttackReport, attacked
from earshot_studies.pate_aae import attacked_generators


@pytest.fixture(scope="module")
def report() -> AttackReport:
    few = {name: ATTACKS[name] for name in ("nearest sample", "samples within a radius")}
    game = attacked_generators.pictures(0, trials=20)
    return attacked(repeating, game, 1.0, 1e-5, confidence=0.99, attacks=few)


def test_what_is_shown_of_a_generator_stands_beside_what_is_stated(report: AttackReport) -> None:
    found = attacked_generators.attack_finding("it", report)
    assert report.chosen.shown > 1
    assert found.exceeds
    assert found.measured.low == report.chosen.shown
    assert found.method.trials == 10
    assert found.method.confidence == 0.99
    hidden = replace(report, chosen=replace(report.chosen, shown=0.4))
    assert not attacked_generators.attack_finding("it", hidden).exceeds


def test_canaries_are_unlike_all_others_and_trainings_alike_in_size() -> None:
    game = attacked_generators.pictures(3)
    assert set(np.unique(game.records[:12])) == {-1.0, 1.0}
    assert np.abs(game.records[12:]).max() < 1
    flat = game.records.reshape(len(game.records), -1)
    assert np.unique(flat, axis=0).shape == flat.shape
    sizes = {len(learned_from(game, np.arange(24) < won)) for won in (0, 5, 24)}
    assert sizes == {100}


@pytest.mark.slow
def test_a_pate_gan_passes_attacks_that_find_what_repeats_its_records() -> None:
    found, power = attacked_generators.audit_generators(0)
    assert isinstance(found, Finding)
    assert found.verdict == power.verdict == "holds"
    assert found.passed
    assert power.passed
    assert attacked_generators.repeated_records(1).exceeds


@pytest.mark.slow
def test_an_autoencoder_without_noise_is_not_as_private_as_its_labels() -> None:
    found = attacked_generators.printed_autoencoder(0)
    assert found.proven is None
    assert found.measured.low > found.claimed


@pytest.mark.slow
def test_a_pate_gan_that_was_warmed_up_on_its_clips_is_caught() -> None:
    found = attacked_generators.warmed_up_generator(2026)
    assert found.exceeds
    assert found.claimed == attacked_generators.EPSILON
