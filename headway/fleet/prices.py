"""What limits cost: the prices that the relaxation puts on them, in words."""

from __future__ import annotations

from headway.fleet.nouns import Fleet, ShadowPrice
from headway.fleet.problem import Solved

_WORTH_TELLING = 1e-4


def shadow_prices(fleet: Fleet, solved: Solved) -> tuple[ShadowPrice, ...]:
    """What one more of each limit that binds would save a day, the dearest first.

    Prices are those of the linear relaxation: right for small changes, and between whole nodes.
    """
    found = []
    for quota in fleet.quotas:
        saves = (solved.quota_duals or {}).get(quota.name, 0.0)
        if saves > _WORTH_TELLING:
            one = "node" if quota.unit == "nodes" else "core"
            text = f"one {one} more in quota {quota.name} would save {saves:.2f} a day"
            found.append(ShadowPrice(name=quota.name, saves_per_day=saves, text=text))
    return tuple(sorted(found, key=lambda price: -price.saves_per_day))
