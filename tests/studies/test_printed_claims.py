"""Claimed costs of papers and a library: what is measured of each, and the command."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.reproduced import reproduced

from earshot_simulations.auditing.losses import Bracket, loss
from earshot_studies import printed_claims
from earshot_studies.dziedzic import claims as dziedzic
from earshot_studies.kit.audited import BROKEN, RIGHT, WRONG, claimed
from earshot_studies.liebenow import claims as liebenow
from earshot_studies.muschiol import claims as muschiol
from earshot_studies.papernot import claims as papernot


@pytest.mark.slow
def test_the_command_shows_which_claims_are_wrong_and_that_it_sees_planted_ones(
    tmp_path: Path,
) -> None:
    rows = reproduced(printed_claims.NAME, tmp_path / "out")
    claims = [row["verdict"] for row in rows if row["of"] != "planted"]
    assert (claims.count(WRONG), claims.count(RIGHT), len(claims)) == (13, 3, 16)
    assert [row["verdict"] for row in rows if row["of"] == "planted"] == ["caught"] * 2
    assert {row["of"] for row in rows} == {*printed_claims.CLAIMS, "planted"}
    note = (tmp_path / "out" / f"{printed_claims.NAME}.md").read_text("utf-8")
    assert "13 of 16 claims are wrong" in note
    for row in rows:
        assert row["case"] in note


def test_a_claim_is_wrong_by_what_is_claimed_and_broken_by_what_is_proven() -> None:
    found = replace(next(dziedzic.claims()), claimed=1.0, proven=2.0)
    for low, verdict in ((0.9, RIGHT), (1.5, WRONG), (2.1, BROKEN)):
        assert claimed("", replace(found, measured=Bracket(low, low))).verdict == verdict


def test_claims_of_the_thesis_and_the_library_are_refuted_by_as_much_as_is_known() -> None:
    vote, swapped = liebenow.thesis_vote(), liebenow.swapped_budgets()
    assert vote.measured.low > 100
    assert swapped.measured.low == pytest.approx(2.9, abs=0.01)
    for fault in (liebenow.laplace_shares(), muschiol.raw_threshold()):
        assert fault.proven is not None
        assert fault.measured.low > 2 * fault.proven


def test_laplace_shares_add_up_to_the_loss_that_brute_force_finds() -> None:
    shares, epsilon, delta = 4, 1.0, 1e-6
    step = 1e-3
    grid = np.arange(-30_000, 30_001) * step
    density = np.exp(-np.abs(grid) * shares * epsilon)
    spectrum = np.fft.rfft(np.fft.ifftshift(density / density.sum())) ** shares
    total = np.fft.fftshift(np.fft.irfft(spectrum, len(grid))).clip(1e-18)
    moved = np.roll(total, round(1 / step))
    brute = loss(total, moved, 1e-4).epsilon(delta).low
    assert liebenow.laplace_shares_epsilon(epsilon, shares, delta).low == pytest.approx(
        brute, rel=0.02
    )


def test_claims_about_several_winners_are_refuted_by_as_much_as_is_known() -> None:
    first, bits, sums, l1 = dziedzic.claims()
    sample, raw = muschiol.claims()
    # ε 20 of τ voting: 33 to whoever sees the winners, 46 to whoever sees the noisy sums.
    assert bits.claimed == sums.claimed == pytest.approx(20, abs=0.05)
    assert bits.measured.low == pytest.approx(33.1, abs=0.05)
    assert sums.measured.low == pytest.approx(45.7, abs=0.05)
    assert first.claimed == pytest.approx(19.9, abs=0.05)
    assert first.measured.low > first.claimed
    assert l1.proven is not None
    assert l1.proven < 0.65 * l1.claimed, "charged by its length in L1"
    assert sample.measured.low > 2.4 * sample.claimed
    assert (raw.claimed, raw.measured.low) == pytest.approx((2.8, 91.8), abs=0.05)


def test_costs_that_look_at_votes_are_refuted_by_as_much_as_is_known() -> None:
    one, release = papernot.one_way(), papernot.smooth_release()
    assert one.claimed == pytest.approx(6.9e-4, rel=0.01)
    assert one.measured.low == pytest.approx(7.8e-4, rel=0.01)
    assert release.claimed == pytest.approx(0.24, abs=0.005)
    assert release.measured.low == pytest.approx(0.50, abs=0.005)
    for each in (one, release):
        assert each.passed
