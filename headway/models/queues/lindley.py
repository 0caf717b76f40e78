"""Waits of given jobs in front of one server, by Lindley's recursion."""

from __future__ import annotations

import numpy as np

from headway.models.arrays import Array

_BLOCK = 1 << 20


def lindley_waits_s(interarrival_s: Array, service_s: Array, first_wait_s: float = 0.0) -> Array:
    r"""Waits of given jobs, first come first served by one server.

    Parameters
    ----------
    interarrival_s : (n,) array, >= 0
        Time from the arrival of each job to that of the next one; 0 within a bulk. [s]
    service_s : (n,) array, >= 0
    first_wait_s : float, >= 0

    Returns
    -------
    (n,) array

    Raises
    ------
    ValueError
        If an argument is outside its range or the arrays differ in length.

    Notes
    -----
    **(Q18)** Simulation: `W_(k+1) = (W_k+S_k-A_k)^+` (Lindley 1952, doi:10.1017/S0305004100027638),
    computed as the distance of a running sum from its running minimum. `A_k = 0` within a bulk.
    Correlated services have autoregressive normal logarithms.

    Examples
    --------
    >>> lindley_waits_s(np.array([2.0, 0.0, 2.0, 9.0]), np.array([3.0, 1.0, 1.0, 1.0]))
    array([0., 1., 2., 1.])
    """
    arrival = np.asarray(interarrival_s, dtype=np.float64)
    service = np.asarray(service_s, dtype=np.float64)
    if arrival.ndim != 1 or arrival.shape != service.shape or len(arrival) == 0:
        raise ValueError("interarrival_s and service_s must be of one length, at least 1")
    if not (np.all(arrival >= 0.0) and np.all(service >= 0.0) and first_wait_s >= 0.0):
        raise ValueError("times must be non-negative")
    wait = np.empty(len(arrival))
    carried = first_wait_s
    # In blocks, so that the running sum does not lose digits in long traces.
    for start in range(0, len(arrival), _BLOCK):
        block = slice(start, start + _BLOCK)
        walk = np.cumsum(service[block] - arrival[block])
        # The wait is the height of the walk above its lowest point so far, or above -carried if the
        # server has not been idle yet.
        lowest = np.minimum(np.minimum.accumulate(walk), -carried)
        wait[start] = carried
        after = walk - lowest
        wait[start + 1 : start + _BLOCK] = after[:-1]
        carried = float(after[-1])
    return wait
