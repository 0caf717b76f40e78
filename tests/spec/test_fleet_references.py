"""Names in a capacity plan's file: all that lead nowhere are reported at once, with positions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headway.api.specs import validate
from headway.errors import InputError

FLEET = """\
apiVersion: headway/v1
kind: CapacityPlan
metadata: {name: f}
spec:
  catalog: catalog.yaml
  jobs:
  - {name: a, batch: {declared: {work: 1h, tasks: 9}, deadline: 1h}, pool: p, zone: zone-a}
  node_types: n
  pools:
  - {name: p, zones: [zone-a, zone-b], node_types: [n, m*]}
  quotas:
  - {name: q, max_nodes: 0, zones: [zone-a], node_types: m1}
"""
CATALOG = """\
apiVersion: headway/v1
kind: NodeCatalog
metadata: {name: c}
spec:
  date: 2026-11-01
  currency: EUR
  nodes:
  - {name: n, cores: 4, memory: 16Gi, price_per_hour: 0.2}
  - {name: m1, cores: 8, memory: 32Gi, price_per_hour: 0.4}
"""


def faults(tmp_path: Path, text: str) -> list[str]:
    (tmp_path / "catalog.yaml").write_text(CATALOG)
    path = tmp_path / "f.yaml"
    path.write_text(text)
    try:
        validate(path)
    except InputError as error:
        lines = str(error).replace(f"{path}:", "").splitlines()
        return [re.sub(r"^(\d+):\d+", r"\1", line) for line in lines]
    return []


def test_a_fleet_whose_names_exist_is_valid(tmp_path: Path) -> None:
    assert faults(tmp_path, FLEET) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "zones: [zone-a], n",
            "zones: [zone-A], n",
            (
                "12: spec.quotas[0].zones: got 'zone-A'; "
                "expected a zone of a pool: zone-a, zone-b; did you mean 'zone-a'?"
            ),
        ),
        (
            "zone: zone-a",
            "zone: zone-c",
            (
                "7: spec.jobs[0].zone: got 'zone-c'; expected a zone "
                "of a pool: zone-a, zone-b; did you mean 'zone-b'?"
            ),
        ),
        (
            "[zone-a, zone-b]",
            "[zone-a, zone-a]",
            ("10: spec.pools[0].zones[1]: the zone 'zone-a' occurs twice; expected each zone once"),
        ),
        (
            "zones: [zone-a, zone-b], ",
            "",
            ("7: spec.jobs[0].zone: got 'zone-a'; expected none, as no pool has zones"),
        ),
        (
            "node_types: n\n",
            "node_types: zz.*\n",
            ("8: spec.node_types: no node 'zz.*' in the catalogue; it has n, m1"),
        ),
        (
            "[n, m*]",
            "[n, k*]",
            ("10: spec.pools[0].node_types[1]: no node 'k*' in the catalogue; it has n, m1"),
        ),
        (
            "node_types: m1",
            "node_types: M1",
            (
                "12: spec.quotas[0].node_types: no node 'M1' in "
                "the catalogue; it has n, m1; did you mean 'm1'?"
            ),
        ),
        (
            "pool: p,",
            "pool: q,",
            ("7: spec.jobs[0].pool: the job 'a' names the pool 'q'; expected one of p"),
        ),
    ],
)
def test_a_name_that_leads_nowhere_has_its_position(
    tmp_path: Path, old: str, new: str, expected: str
) -> None:
    assert faults(tmp_path, FLEET.replace(old, new))[0] == expected


def test_all_wrong_names_are_reported_at_once(tmp_path: Path) -> None:
    text = FLEET.replace("pool: p", "pool: q").replace("node_types: n\n", "node_types: x\n")
    text = text.replace("zones: [zone-a], n", "zones: c, n")
    text += "  - {name: q, max_nodes: 1, node_types: y}\n"
    routes = [line.split(": ")[1] for line in faults(tmp_path, text)]
    assert routes == [
        "spec.jobs[0].pool",
        "spec.node_types",
        "spec.quotas[0].zones",
        "spec.quotas[1].name",
        "spec.quotas[1].node_types",
    ]
