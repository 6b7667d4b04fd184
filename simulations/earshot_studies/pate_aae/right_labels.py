"""Bounds on right labels under Laplace noise of scale K/2ε: Figure 5 of Yang et al.

The best possible votes are unanimous and right. For these, the share of labels that are still right
under noise is computed exactly, and the accuracy of a student of them is bounded, without any
sound.
"""

from __future__ import annotations

import math

from earshot_models.votes.costs.claims import printed_scale
from earshot_protocol import checks

TEACHERS, WORDS = 200, 35
"""Numbers of teachers and of words in the paper."""


def right_labels(teachers: int, classes: int, scale: float) -> float:
    """Return the share of right labels if all teachers vote for the right class.

    It is ∫ f(x) F(x + n/b)^(m−1) dx, with density f and distribution function F of Laplace noise of
    scale 1, computed in parts: the winner's noise beyond −n/b and beyond 0 in closed form, and
    between them by quadrature.

    Args:
        teachers: Number of teachers (n).
        classes: Number of classes (m).
        scale: Scale of the noise on every count, in votes (b).

    Returns:
        A share from 1/m, for infinite noise, to 1.

    Raises:
        InvalidParametersError: There are no teachers, fewer than two classes, or the scale is not
            positive.
    """
    from scipy.integrate import quad

    others = checks.whole("classes", classes, 2) - 1
    lead = checks.whole("teachers", teachers) / checks.positive("scale", scale)
    low = math.exp(-lead)
    if low == 0:
        return 1.0
    below = 2.0**-classes * low / classes
    above = -math.expm1(classes * math.log1p(-low / 2)) / (classes * low)

    def density(noise: float) -> float:
        return math.exp(noise + others * math.log1p(-math.exp(-noise - lead) / 2)) / 2

    # No more than 10⁻²⁶ of the winner's noise is beyond 60 scales.
    between = quad(density, max(-lead, -60.0), 0.0, epsabs=1e-12, limit=200)[0]
    return float(below + between + above)


def printed_right_labels(epsilon: float, queries: int) -> float:
    """Return the share for the paper's teachers and words at its scale, K/2ε."""
    return right_labels(TEACHERS, WORDS, printed_scale(epsilon, queries))


def most_accuracy(epsilon: float, queries: int, words: int = WORDS) -> float:
    """Bound the accuracy of a student, even if generated clips separate perfectly by word.

    Clips of one word then share n = ⌈K/m⌉ noisy labels. Each label has the law P_c if its word is
    c: it is right with probability p, and otherwise any other word, all equally likely. A guess of
    the word from n labels is right with probability at most 1/m + TV. TV is the distance from the
    labels' law P_c to n uniform draws of words, with TV ≤ √(n · KL / 2) (Pinsker) and
    TV ≤ 1 − 1/m.

    Args:
        epsilon: Budget ε in the scale K/2ε.
        queries: Number of queries (K), at least one for every word.
        words: Number of words (m).

    Raises:
        InvalidParametersError: There are fewer queries than words.
    """
    checks.whole("queries", queries, words)
    right = right_labels(TEACHERS, words, printed_scale(epsilon, queries))
    wrong = (1 - right) / (words - 1)
    divergence = right * math.log(right * words)
    if wrong > 0:
        divergence += (1 - right) * math.log(wrong * words)
    each = math.ceil(queries / words)
    return min(1.0, 1 / words + math.sqrt(max(0.0, each * divergence / 2)))


def best_accuracy(epsilon: float, words: int = WORDS, most_labels: int = 300) -> float:
    """Bound the accuracy of a student for any number of queries, up to `most_labels` of a word.

    Some word has ⌈K/m⌉ labels, and noise grows with K: the fewest queries with this many labels of
    a word have the highest bound.

    Args:
        epsilon: Budget ε in the scale K/2ε.
        words: Number of words (m).
        most_labels: Most labels of a word that are tried.
    """
    fewest = [words, *(words * (labels - 1) + 1 for labels in range(2, most_labels + 1))]
    return max(most_accuracy(epsilon, queries, words) for queries in fewest)
