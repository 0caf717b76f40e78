"""What was declared and never ran is nowhere called profiled: in no command, of either kind."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from headway.cli.main import run

CONFIGS = Path(__file__).parents[2] / "configs"
DECLARED = ["clicks-declared.yaml", "nightly-report.yaml"]


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command prints, without the keys and paths that have such a name."""
    assert run(words) in (0, 3)
    printed = capsys.readouterr()
    return re.sub(r'"profiled": null|[\w/.-]+\.profile\.yaml', "", printed.out + printed.err)


@pytest.mark.parametrize("name", DECLARED)
def test_declared_figures_are_never_called_profiled(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec, plan = str(CONFIGS / name), tmp_path / "plan.json"
    assert run(["plan", spec, "--json"]) in (0, 3)
    plan.write_text(capsys.readouterr().out)
    texts = [
        said(capsys, "plan", spec),
        said(capsys, "plan", spec, "--json"),
        said(capsys, "check", spec),
        said(capsys, "lock", spec, "-o", str(tmp_path / "headway.lock")),
        *(
            said(capsys, "emit", spec, "--format", output_format)
            for output_format in ("spark-defaults", "pyspark", "kubeflow", "airflow", "tfvars")
        ),
    ]
    if json.loads(plan.read_text())["schema"] == "headway.plan/v1":
        texts.append(said(capsys, "explain", str(plan)))
    for text in texts:
        assert "declared" in text or "profile" not in text
        found = re.search(r".*\bprofiled?\b.*", text)
        assert found is None, found
