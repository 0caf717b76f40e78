"""The catalogue that comes with Headway: figures that fit together, each with where it is from."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest

from headway.spec.parts import built_in_catalog

NODES = built_in_catalog().nodes


def test_three_clouds_and_our_own_machines() -> None:
    assert {node.provider for node in NODES} == {"aws", "gcp", "azure", "on-premises"}


@pytest.mark.parametrize("node", NODES, ids=lambda node: node.name)
def test_every_entry_says_where_its_price_is_from(node) -> None:  # type: ignore[no-untyped-def]
    assert node.source
    assert 1 <= node.memory_bytes / 2**30 / node.cores <= 8
    assert node.spot_price_per_hour is None or node.spot_price_per_hour < node.price_per_hour


def test_sizes_of_a_family_cost_in_proportion() -> None:
    families = defaultdict(list)
    for node in NODES:
        if node.provider != "on-premises":
            family = re.sub(r"(?<=[a-zA-Z.-])\d*(?=xlarge|s_v|$)", "#", node.name)
            families[family].append(node.price_per_hour / node.cores)
    assert len(families) >= 9
    for prices in families.values():
        assert max(prices) == pytest.approx(min(prices), rel=0.002)
