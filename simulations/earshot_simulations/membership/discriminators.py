"""Attack by discriminator, which mistakes members for samples as it tells samples from others.

LOGAN's black-box attack with auxiliary knowledge (Hayes et al., PoPETs 2019, section 4.3): the
attacker trains a discriminator of its own on what the generator makes, against records that it did
not learn from. The more a generator repeats, the surer that is of its records.
"""

from __future__ import annotations

import numpy as np

from earshot_simulations.membership.game import Game, Numbers, Played, flat

_LEAST = 100
"""Samples that are used at least, if there are as many; more if there are more other records."""


def discriminator(game: Game, played: Played) -> Numbers:
    """Return a discriminator's certainty that records are samples, (trials, records)."""
    records, reference = flat(game.records), flat(game.reference)
    most = max(len(reference), _LEAST)
    return np.stack([_sureness(each[:most], reference, records) for each in played.samples])


def _sureness(samples: Numbers, reference: Numbers, records: Numbers) -> Numbers:
    """Return the certainty of an RBF support vector machine, local like overfitting."""
    from sklearn.svm import SVC

    rows = np.concatenate([samples, reference])
    made = np.arange(len(rows)) < len(samples)
    machine = SVC(kernel="rbf", gamma="scale", class_weight="balanced", C=10.0).fit(rows, made)
    return np.asarray(machine.decision_function(records), dtype=np.float64)
