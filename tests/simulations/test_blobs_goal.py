"""The goal of the local route: 500 phones of 200 recordings find ten blobs for ε ≤ 2.5 in all."""

from __future__ import annotations

import pytest

from earshot_protocol.privacy.accounting import total
from earshot_protocol.privacy.mechanisms import Unit
from earshot_simulations.phases.settings import Discovery, Settings, SummationChoice
from earshot_simulations.phases.simulation import simulate


@pytest.mark.slow
@pytest.mark.parametrize("seed", [109, 110, 116])
def test_ten_blobs(seed: int) -> None:
    """Seeds on which the candidates with the most votes made 0.86, 0.95 and 0.86."""
    settings = Settings(
        discovery=Discovery.LOCAL,
        dropout=0.1,
        summation=SummationChoice.IDEAL,
        seed=seed,
        jobs=1,
    )
    assert (settings.phones, settings.recordings, settings.scenes) == (500, 200, 10)
    run = simulate(settings)
    assert total(run.privacy)[Unit.RECORDING].epsilon <= 2.5
    assert run.found.ari_test is not None
    assert run.found.ari_test >= 0.97
