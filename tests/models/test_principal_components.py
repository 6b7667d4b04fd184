from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from earshot_models.principal_components import fit
from earshot_protocol.errors import InvalidInputError, InvalidParametersError


def examples() -> np.ndarray:
    generator = np.random.default_rng(0)
    mixed = generator.normal(size=(300, 6)) * [5, 3, 2, 1, 0.5, 0.2]
    return (mixed @ generator.normal(size=(6, 6)) + 7).astype(np.float32)


@pytest.mark.parametrize(("whitening", "whiten"), [(0.0, False), (0.5, True)])
def test_it_agrees_with_scikit_learn(whitening: float, whiten: bool) -> None:
    features = examples().astype(float)
    components = fit(features, 4, whitening)
    mapped = (features - components.mean) @ components.weights
    standard = StandardScaler().fit_transform(features)
    expected = PCA(4, whiten=whiten, svd_solver="full").fit_transform(standard)
    # Scikit-learn divides by n - 1, and chooses its signs otherwise.
    expected *= np.sqrt(300 / 299) if whiten else 1
    expected *= np.sign(np.sum(mapped * expected, axis=0))
    np.testing.assert_allclose(mapped, expected, atol=1e-8)


def test_damped_whitening_stands_between() -> None:
    features = examples().astype(float)

    def variances(whitening: float) -> np.ndarray:
        components = fit(features, 4, whitening)
        return ((features - components.mean) @ components.weights).var(axis=0)

    np.testing.assert_allclose(variances(0.5), 1)
    np.testing.assert_allclose(variances(0.2), variances(0.0) ** 0.6)
    assert (np.diff(variances(0.2)) < 0).all()


def test_bad_input_is_named() -> None:
    features = examples()
    for dimensions in (0, 7):
        with pytest.raises(InvalidParametersError, match="1 to the 6"):
            fit(features, dimensions)
    for whitening in (-0.1, 0.6):
        with pytest.raises(InvalidParametersError, match=r"0 to 0\.5"):
            fit(features, 4, whitening)
    with pytest.raises(InvalidParametersError, match="span fewer"):
        fit(features[:3], 5)
    with pytest.raises(InvalidInputError, match="2 examples"):
        fit(features[:1], 1)
    with pytest.raises(InvalidInputError, match="must vary"):
        fit(np.hstack([features, np.ones((300, 1), np.float32)]), 2)
    features[3, 3] = np.nan
    with pytest.raises(InvalidInputError, match="finite"):
        fit(features, 2)
