"""The executors of a tuner in manifests of Kubernetes operators, for the next restart."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from headway.cli.main import run
from headway.domain.tuner import Phase, TunerState
from headway.emitters.patch import patch_executors
from headway.errors import InputError
from headway.formats.tuner_files import save_tuner
from tests.factories import a_configuration
from tests.sources import ROOT

TUNED = {"minExecutors": 2, "initialExecutors": 4, "maxExecutors": 12}
KUBEFLOW = """\
# ours
apiVersion: sparkoperator.k8s.io/v1beta2
kind: SparkApplication
metadata: {name: orders}
spec:
  type: Python   # kept
  executor:
    cores: 2
    instances: 9
"""
APACHE = """\
apiVersion: spark.apache.org/v1
kind: SparkApplication
metadata:
  name: orders
spec:
  sparkConf:
    spark.executor.instances: "9"
"""
SCHEDULED = """\
apiVersion: sparkoperator.k8s.io/v1beta2
kind: ScheduledSparkApplication
metadata: {name: orders}
spec:
  schedule: "@hourly"
  template:
    executor:
      instances: 9
"""
OTHER = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        (KUBEFLOW, {"executor": {"cores": 2, "instances": 4}}),
        (
            KUBEFLOW + "  dynamicAllocation:\n    enabled: true\n    maxExecutors: 5\n",
            {
                "executor": {"cores": 2, "instances": 9},
                "dynamicAllocation": {
                    "enabled": True, "minExecutors": 2, "initialExecutors": 4, "maxExecutors": 12,
                },
            },
        ),
        (
            SCHEDULED,
            {"schedule": "@hourly", "template": {"executor": {"instances": 4}}},
        ),
        (
            SCHEDULED + "    dynamicAllocation:\n      enabled: true\n",
            {
                "schedule": "@hourly",
                "template": {
                    "executor": {"instances": 9},
                    "dynamicAllocation": {
                        "enabled": True, "minExecutors": 2, "initialExecutors": 4,
                        "maxExecutors": 12,
                    },
                },
            },
        ),
        (APACHE, {"sparkConf": {"spark.executor.instances": "4"}}),
        (
            APACHE + '    spark.dynamicAllocation.enabled: "true"\n',
            {
                "sparkConf": {
                    "spark.executor.instances": "9",
                    "spark.dynamicAllocation.enabled": "true",
                    "spark.dynamicAllocation.minExecutors": "2",
                    "spark.dynamicAllocation.initialExecutors": "4",
                    "spark.dynamicAllocation.maxExecutors": "12",
                }
            },
        ),
    ],
    ids=[
        "kubeflow", "kubeflow, dynamic", "scheduled", "scheduled, dynamic", "apache",
        "apache, dynamic",
    ],
)  # fmt: skip
def test_an_application_gets_what_its_operator_reads(
    manifest: str, expected: dict[str, object]
) -> None:
    text = patch_executors(OTHER + "---\n" + manifest, TUNED, name="a.yaml")
    _, application = yaml.safe_load_all(text)
    spec = application["spec"]
    spec.pop("type", None)
    assert spec == expected
    changed = [line for line in manifest.splitlines() if line not in text.splitlines()]
    assert all("instances" in line or "maxExecutors" in line for line in changed)
    assert patch_executors(text, TUNED, name="a.yaml") == text


def test_a_file_with_no_or_several_applications_is_refused() -> None:
    second = APACHE.replace("orders", "clicks")
    with pytest.raises(InputError, match="applications: none; expected one SparkApplication"):
        patch_executors(OTHER, TUNED, name="a.yaml")
    both = f"{KUBEFLOW}---\n{second}"
    with pytest.raises(InputError, match="applications: orders, clicks; expected one"):
        patch_executors(both, TUNED, name="a.yaml")
    text = patch_executors(both, TUNED, name="a.yaml", job="clicks")
    assert "instances: 9" in text
    assert 'spark.executor.instances: "4"' in text


def test_the_command_takes_the_state_of_the_tuner(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "orders.yaml").write_text(
        "apiVersion: headway/v1\nkind: Tuning\nmetadata: {name: orders}\n"
        f"spec: {{profile: {ROOT / 'examples' / 'word-count.profile.yaml'}, target: p99 <= 3s, "
        "state: orders.tuner.json, executors: {min: 2, max: 12}}\n"
    )
    manifest = tmp_path / "application.yaml"
    manifest.write_text(KUBEFLOW)
    words = ["tune", str(tmp_path / "orders.yaml"), "--patch", str(manifest)]
    assert run(words) == 2
    assert "expected the state of a tuner that has run" in capsys.readouterr().err
    setting = a_configuration(executors=7)
    save_tuner(
        TunerState(
            profile_hash="h", target="p99 <= 3 s", phase=Phase.HOLD, original=setting,
            last_good=setting,
        ),
        tmp_path / "orders.tuner.json",
    )  # fmt: skip
    assert run(words) == 0
    assert "    instances: 7\n" in capsys.readouterr().out
    assert manifest.read_text() == KUBEFLOW
    assert run([*words, "--write"]) == 0
    assert manifest.read_text() == KUBEFLOW.replace("instances: 9", "instances: 7")
    assert "patched" in capsys.readouterr().err
    assert run([*words[:2], "--write"]) == 2
    assert "it works with --patch FILE only" in capsys.readouterr().err
