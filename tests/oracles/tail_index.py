"""How heavy the tail of free-running batches is, by Kesten's equation and not by a law of ours."""

from __future__ import annotations

import math

#: Rows meet intervals in proportion to their length: of a latency the second moment of an interval
#: counts, of its square the third.
LATENCY_HAS_MEAN, LATENCY_HAS_VARIANCE = 2.0, 3.0


def tail_index(offered_load: float, noise: float, share: float, persistence: float) -> float:
    """Moments of the duration below this one exist; those above do not.

    `D' = (a+rD) ξ` has the index `κ` at which `r^κn E[(ξ_1 .. ξ_n)^κ]` neither grows nor shrinks
    with `n` (Kesten 1973, doi:10.1007/BF02392040). Of a normal autoregression the logarithm of the
    product has the variance `n v`, `v = s^2 (1-ρ+ρ (1+ψ)/(1-ψ))`, in the long run, and the mean
    `-n s^2/2`; so `κ = (s^2-2 ln r)/v`. A trigger interval changes nothing of it.
    """
    variance = math.log1p(noise * noise)
    lasting = (1.0 + persistence) / (1.0 - persistence)
    long_run = variance * (1.0 - share + share * lasting)
    return (variance - 2.0 * math.log(offered_load)) / long_run
