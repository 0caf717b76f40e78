"""The terms of Spitzer's sums: one by one at first, then by quadrature."""

from __future__ import annotations

import numpy as np

from headway.models.arrays import Array


def spitzer_terms(num_exact: int, last: float, nodes: Array, weights: Array) -> tuple[Array, Array]:
    r"""Numbers of increments and what each counts in a sum over 1/n.

    Parameters
    ----------
    num_exact : int, >= 1
        Terms that are taken one by one. [-]
    last : float
        From where on terms are negligible; no quadrature if that is within the exact ones. [-]
    nodes, weights : (k,) arrays
        Gauss-Legendre on -1..1, for the terms beyond.

    Returns
    -------
    tuple of arrays
        Numbers, not all of them whole, and weights; of one length.

    Notes
    -----
    theory.md (Q10). Euler-Maclaurin: the rest is the integral from the last exact term on, less
    half of that term. In the logarithm of n the integrand is smooth over all its decades.

    Examples
    --------
    >>> nodes, weights = np.polynomial.legendre.leggauss(24)
    >>> count, weight = spitzer_terms(400, 1e6, nodes, weights)
    >>> float(weight @ count**-1.0)  # pi^2 / 6, less what lies beyond a million
    1.644933
    """
    count = np.arange(1.0, num_exact + 1.0)
    weight = 1.0 / count
    if last > num_exact:
        half_width = 0.5 * np.log(last / num_exact)
        weight[-1] /= 2.0
        node = np.exp(np.log(num_exact) + half_width * (1.0 + nodes))
        count = np.concatenate([count, node])
        weight = np.concatenate([weight, half_width * weights])
    return count, weight
