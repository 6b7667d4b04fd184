"""What Yang et al. (Interspeech 2021) print of their generators and students."""

from __future__ import annotations

from collections.abc import Mapping

from earshot_studies.pate_aae.systems import System

FID: Mapping[System, Mapping[float, float]] = {
    System.DP_GAN: {0.01: 35.2, 0.1: 32.2, 1: 28.8, 10: 26.7, 100: 24.9},
    System.PATE_GAN: {0.01: 33.4, 0.1: 30.1, 1: 27.9, 10: 26.0, 100: 24.3},
    System.PRINTED: {0.01: 30.2, 0.1: 28.6, 1: 26.3, 10: 24.7, 100: 24.0},
}
"""Table 1, by system and ε."""

ACCURACY: Mapping[System, float] = {
    System.DP_GAN: 92.02,
    System.PATE_GAN: 92.19,
    System.PRINTED: 92.37,
}
"""Section 4.2, in %, at ε = 100; Figure 5 has no numbers."""

AHEAD: Mapping[System, Mapping[float, float]] = {
    System.PATE_GAN: {0.01: 2.11, 0.1: 1.11, 100: 0.18},
    System.DP_GAN: {0.01: 6.60, 0.1: 5.32, 100: 0.35},
}
"""By how many points the accuracy of AAE is above another system's, by ε; section 4.2."""
