"""The one setting to run at a number of nodes."""

from __future__ import annotations

import numpy as np

from headway.planner.candidates import Candidates
from headway.planner.frontier import best_of_each_node_count
from headway.planner.noise_free import noise_free_rate_per_s

_HEADROOM_RATIO = 1.25
_SELDOM_PROB = 0.1


def chosen_setting(at_nodes: Candidates) -> Candidates:
    """The one setting to run at the chosen node count: theory.md (P6).

    Of the settings that would carry a quarter more than asked: today's partitions first, which
    spares a new checkpoint, then batches that keep to their trigger, then the rarest batches.
    Where none has that much room, the one that sustains most.
    """
    question = at_nodes.question
    rate_per_s, today = question.rate_per_s, question.profile.baseline.shuffle_partitions
    possible = at_nodes.take(noise_free_rate_per_s(at_nodes) >= rate_per_s)
    met = possible.take(possible.meets(rate_per_s))
    roomy = met.take(met.meets(_HEADROOM_RATIO * rate_per_s))
    if not len(roomy):
        ((place, _),) = best_of_each_node_count(met).values()
        return met.take(np.array([place]))
    overruns = roomy.overrun_probability(rate_per_s) > _SELDOM_PROB
    order = sorted(
        range(len(roomy)),
        key=lambda place: (
            roomy.partitions[place] != today,
            overruns[place] and roomy.trigger_s[place] > 0,
            -roomy.trigger_s[place],
            roomy.partitions[place],
        ),
    )
    return roomy.take(np.array([order[0]]))
