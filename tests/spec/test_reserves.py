"""Executors of a plan can be scheduled: what platforms keep of a node is not given to them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import headway
from headway.api.arguments import node_types_of
from headway.cli.main import run
from headway.domain import PLATFORMS, Deadline, NodeType, StreamAnswer
from headway.domain.node_type import Platform
from headway.domain.question import PlanQuestion
from headway.errors import InputError
from headway.formats.as_json import json_text, plan_json
from headway.formats.from_json import parse_plan
from headway.spec.parts import built_in_catalog, node_type_named, node_type_of, reserve_of
from headway.spec.spec_file import parse_spec
from headway.units import parse_size_bytes, spark_memory_bytes
from headway.words import all_words
from tests.factories import a_profile
from tests.planner.test_deadline import a_long_job
from tests.seeds import first_of

GIB = 2**30
MIB = 2**20
# Memory of a node -> what YARN has of it on EMR, by the vendor's table of instance types.
EMR_MIB = {
    8: 6144,  # m4.large
    16: 12288,  # m4.xlarge
    32: 24576,  # m4.2xlarge
    64: 57344,  # m4.4xlarge
    160: 155648,  # m4.10xlarge
    256: 253952,  # m4.16xlarge
    488: 491520,  # r4.16xlarge
}


def plan_of(**options: Any) -> StreamAnswer:
    profile = a_profile()
    answer: StreamAnswer = headway.plan(
        profile, rate=5000.0, target="p99 <= 3s", max_nodes=4, **options
    )
    return answer


@pytest.mark.parametrize(("node_gib", "yarn_mib"), EMR_MIB.items())
def test_emr_has_what_its_table_says(node_gib: int, yarn_mib: int) -> None:
    reserve = reserve_of("emr")
    assert reserve is not None
    assert reserve.memory_left_bytes(node_gib * GIB) == yarn_mib * MIB
    assert reserve.cores_left(16) == 16


@pytest.mark.parametrize(
    ("platform", "cores", "memory_gib", "left", "least_mib", "most_mib"),
    [
        # GKE leaves 3920m of 4 cores and 13.3 GiB of 16 GiB before what runs on every node.
        ("kubernetes", 4, 16, 3, 12 * 1024, 13.3 * 1024),
        ("kubernetes", 8, 32, 7, 27 * 1024, 29 * 1024),
        ("kubernetes", 1, 2, 0, 0, 2 * 1024),
        ("emr-eks", 16, 64, 15, 56 * 1024, 60 * 1024),
        ("yarn", 16, 64, 15, 49 * 1024, 50 * 1024),
        ("dataproc", 4, 15, 4, 12 * 1024, 12 * 1024),
        ("databricks", 4, 14, 4, 1.1 * 7284 - 5, 1.1 * 7284 + 5),
        ("standalone", 4, 16, 4, 15 * 1024, 15 * 1024),
    ],
)
def test_what_is_left_of_a_node(
    platform: str, cores: int, memory_gib: int, left: int, least_mib: float, most_mib: float
) -> None:
    reserve = reserve_of(platform)
    assert reserve is not None
    assert reserve.cores_left(cores) == left
    assert least_mib * MIB <= reserve.memory_left_bytes(memory_gib * GIB) <= most_mib * MIB


@pytest.mark.parametrize(("platform", "per_node"), [("databricks", 1), ("emr", None)])
def test_databricks_runs_one_executor_per_node(platform: Any, per_node: int | None) -> None:
    assert node_type_named("m6i.xlarge", None, platform).executors_per_node == per_node


def test_every_figure_is_dated_and_sourced() -> None:
    stated = {name for one in built_in_catalog().reserves for name in one.platforms}
    assert stated == set(PLATFORMS) - {"emr-serverless"}
    assert all(len(one.source) > 20 and one.date >= "2026-11-22" for one in (
        *built_in_catalog().reserves,
    ))  # fmt: skip


def container_bytes(plan: StreamAnswer) -> int:
    conf = plan.spark_conf
    heap = spark_memory_bytes(conf["spark.executor.memory"])
    overhead = conf.get("spark.executor.memoryOverhead")
    usual = max(heap // 10, 384 * MIB)
    return heap + (usual if overhead is None else spark_memory_bytes(overhead))


@pytest.mark.parametrize("platform", [one for one in PLATFORMS if one != "emr-serverless"])
@pytest.mark.parametrize(
    "name", first_of(["m6i.xlarge", "n2-standard-8", "m6i.4xlarge", "r6i.2xlarge"], 1)
)
def test_executors_fit_what_is_left(platform: str, name: str) -> None:
    plan = plan_of(node_types=[name], platform=platform)
    node = next(one for one in built_in_catalog().nodes if one.name == name)
    reserve = reserve_of(platform)
    assert reserve is not None
    per_node = -(-int(plan.spark_conf["spark.executor.instances"]) // plan.nodes)
    cores = int(plan.spark_conf["spark.executor.cores"])
    assert per_node * cores <= reserve.cores_left(node.cores)
    assert per_node * container_bytes(plan) <= reserve.memory_left_bytes(node.memory_bytes)
    (said,) = (one for one in all_words(plan.findings) if "left to the system" in one)
    assert f"({platform}, figures of 2026-11-22)" in said
    assert plan.node_type is not None
    assert plan.node_type.cores + plan.node_type.reserved_cores == node.cores
    assert parse_plan(json_text(plan_json(plan)), name="p").node_type == plan.node_type


def test_kubernetes_is_what_is_planned_for_where_nothing_is_said() -> None:
    assert plan_of(node_types=["m6i.xlarge"]).node_type == plan_of(
        node_types=["m6i.xlarge"], platform="kubernetes"
    ).node_type  # fmt: skip
    with pytest.raises(InputError, match="platform is 'mesos'; expected one of kubernetes"):
        plan_of(node_types=["m6i.xlarge"], platform="mesos")
    with pytest.raises(InputError, match=r"1 of 4 cores and .* of m6i.xlarge are left to the"):
        plan_of(node_types=["m6i.xlarge"], cores=4)


def test_figures_of_the_user_are_what_spark_may_take() -> None:
    (kind,) = node_types_of(PlanQuestion(node_types=("own:cores=4,memory=14g",)))
    assert (kind.cores, kind.memory_bytes, kind.reserve_text) == (4, 14 * GIB, None)
    assert not [one for one in all_words(plan_of(node_types=[kind]).findings) if "left to" in one]


def test_a_catalogue_may_tell_its_own_reserves(tmp_path: Path) -> None:
    file = tmp_path / "nodes.yaml"
    file.write_text(
        "apiVersion: headway/v1\nkind: NodeCatalog\nmetadata: {name: own}\nspec:\n"
        "  date: 2026-11-22\n  currency: USD\n"
        "  nodes:\n  - {name: ours, cores: 8, memory: 32Gi, price_per_hour: 1}\n"
        "  reserves:\n  - platform: kubernetes\n    other_cores: 2\n    other_memory: 4Gi\n"
        "    date: 2026-11-20\n    source: measured on our cluster\n"
    )

    def catalogued(platform: Platform) -> list[NodeType]:
        return node_types_of(PlanQuestion(node_types=("ours",), catalog=file, platform=platform))

    (own,) = catalogued("kubernetes")
    assert (own.cores, own.memory_bytes) == (6, 28 * GIB)
    assert own.reserved_by == "kubernetes, figures of 2026-11-20"
    (other,) = catalogued("emr")
    assert (other.cores, other.memory_bytes) == (8, 24 * GIB)


def cluster(**entries: object) -> Any:
    lines = "".join(f"  {key}: {json.dumps(value)}\n" for key, value in entries.items())
    text = f"apiVersion: headway/v1\nkind: Cluster\nmetadata: {{name: c}}\nspec:\n{lines}"
    return parse_spec(text, name="c.yaml", folder=Path()).spec


def test_a_cluster_keeps_what_its_platform_does_or_what_its_file_says() -> None:
    default = node_type_of(cluster(platform="kubernetes", node="m6i.xlarge"))
    assert default.cores == 3
    assert default.reserved_by == "kubernetes, figures of 2026-11-22"
    own = node_type_of(
        cluster(platform="kubernetes", node="m6i.xlarge", reserved_cores=0, reserved_memory="1Gi")
    )
    assert (own.cores, own.memory_bytes) == (4, 15 * GIB)
    assert own.reserved_by == "the cluster's file"
    with pytest.raises(InputError, match="less 1 for the system has no room for an executor of 4"):
        node_type_of(cluster(platform="kubernetes", node="m6i.xlarge", cores_per_executor=4))


def test_batch_plans_leave_the_same() -> None:
    plan = headway.plan(
        a_long_job(), target=Deadline(limit_s=1e6), node_types=["m6i.xlarge"], platform="yarn"
    )
    assert plan.node_type is not None
    assert plan.node_type.cores == 3
    assert plan.cores_per_executor <= 3
    assert any("left to the system (yarn" in one for one in all_words(plan.findings))


def test_the_command_takes_the_platform(capsys: pytest.CaptureFixture[str]) -> None:
    profile = Path(__file__).parents[2] / "examples" / "word-count.profile.yaml"
    words = ["plan", str(profile), "--rate", "20k/s", "--target", "p99 <= 3s", "--json"]
    for platform, cores in (("standalone", 4), ("kubernetes", 3)):
        assert run([*words, "--node-type", "m6i.xlarge", "--platform", platform]) == 0
        assert json.loads(capsys.readouterr().out)["node_type"]["cores"] == cores


def test_plans_without_node_types_are_as_they_were() -> None:
    plan = plan_of()
    assert plan.node_type is None
    assert plan.spark_conf["spark.executor.cores"] == "4"
    assert parse_size_bytes("8g") == 8 * GIB
