"""Intervals that stay valid when they are looked at all the time.

Whoever looks at a 95 % interval after every rating, and stops when it excludes 0, is wrong far more
often than in 5 % of the cases. The intervals here hold at all times together: in 95 % of studies
they never exclude the truth, whenever and why somebody looks or stops.

They replace Student's quantile by the one at which the likelihood ratio of a mixture reaches
1 / α. With n independent contexts, ν = n - 1, and effects δ = mean / deviation distributed as
N(0, g) under the alternative, the t-statistic has the likelihood ratio

    (1 + n g)^(-1/2) [(1 + t²/ν) / (1 + t²/(ν (1 + n g)))]^((ν + 1) / 2)

which is a martingale if there is no effect and values are normal with any deviation, so that it
reaches 1 / α with a probability of at most α (Ville). Solved for t with c = 1 + n g and
K = (√c / α)^(2 / (ν + 1)):

    t² = ν (K - 1) / (1 - K / c)        infinite while K ≥ c

So there is no interval before about ten contexts, which is the burn-in. For large n it is Robbins'
normal mixture, which holds for any distribution as n grows (Waudby-Smith et al. 2024,
"Time-uniform central limit theory and asymptotic confidence sequences"); the likelihood ratio is
Lai's (1976), also Pérez-Ortiz et al. (2024) and Wang & Ramdas (2025) on anytime-valid t-tests. For
ratings, which are not normal, ``benchmarks/plan.py`` measures how often it is wrong.
"""

from __future__ import annotations

import math

TUNED_FOR = 100
"""Contexts at which the intervals are narrowest relative to usual ones. It must not depend on the
ratings."""


def prior_variance(confidence: float = 0.95, contexts: float = TUNED_FOR) -> float:
    """Return g, the variance of the mixture, for which intervals are narrowest at so many contexts.

    From the minimum of the quantile of the normal mixture at n = ``contexts``, by n g of which the
    derivative vanishes: x - log(1 + x) = 2 log(1 / α), where x = n g.
    """
    wanted = -2 * math.log(1 - confidence)
    x = wanted + 1
    for _ in range(50):
        x -= (x - math.log1p(x) - wanted) * (1 + x) / x
    return x / contexts


def anytime_quantile(
    contexts: float, confidence: float = 0.95, *, tuned_for: float = TUNED_FOR
) -> float:
    """Return by how many standard errors an interval that holds at all times reaches; infinite for
    too few independent contexts."""
    if contexts < 2:
        return math.inf
    freedom = contexts - 1
    c = 1 + contexts * prior_variance(confidence, tuned_for)
    ratio = math.exp(2 / (freedom + 1) * (math.log(c) / 2 - math.log(1 - confidence)))
    if ratio >= c:
        return math.inf
    return math.sqrt(freedom * (ratio - 1) / (1 - ratio / c))


def anytime_p(t: float, contexts: float, *, confidence: float = 0.95) -> float:
    """Return the p-value that stays valid: at most the α whose interval reaches to 0.

    It is 1 over the likelihood ratio, so it belongs to the mixture tuned for ``confidence``.
    """
    if contexts < 2 or math.isnan(t):
        return 1.0
    freedom = contexts - 1
    c = 1 + contexts * prior_variance(confidence)
    if math.isinf(t):
        log_ratio = (freedom + 1) / 2 * math.log(c)
    else:
        x = t * t / freedom
        log_ratio = (freedom + 1) / 2 * (math.log1p(x) - math.log1p(x / c))
    return min(1.0, math.exp(math.log(c) / 2 - log_ratio))
