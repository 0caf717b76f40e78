"""The scripts of the GitHub action and the GitLab template, run without GitHub and GitLab."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from headway.ci.formats.markdown import MARKER
from tests.sources import ROOT

CI = ROOT / "examples" / "ci"
ACTION = yaml.safe_load((CI / "github" / "action.yml").read_text(encoding="utf-8"))
WORKFLOW = yaml.safe_load((CI / "github" / "workflow.yml").read_text(encoding="utf-8"))
TEMPLATE = yaml.safe_load((CI / "gitlab.yml").read_text(encoding="utf-8"))["headway"]

# It notes its arguments and the body of the comment, and answers with the comments that there are.
_FAKE = """\
#!/bin/sh
echo "$(basename "$0") $*" >> "$CALLS"
case "$*" in
  *headway.md*) cat headway.md >> "$CALLS" ;;
  *--method*|*--request*) ;;
  *) cat "$COMMENTS" ;;
esac
"""


class Runner:
    """A checkout, the tools on the path of a job, and what was done with them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.calls_file = folder / "checkout", folder / "calls"
        self.comments, self.outputs = folder / "comments", folder / "outputs"
        for name in ("configs", "examples"):
            shutil.copytree(ROOT / name, self.folder / name)
        tools = folder / "tools"
        tools.mkdir()
        command = f'#!/bin/sh\nexec "{sys.executable}" -m headway "$@"\n'
        scripts = {"headway": command, "gh": _FAKE, "curl": _FAKE}
        for name, text in scripts.items():
            (tools / name).write_text(text, encoding="utf-8")
            (tools / name).chmod(0o755)
        (tools / "python").symlink_to(sys.executable)
        for file in (self.calls_file, self.comments, self.outputs):
            file.touch()
        self.environment = {
            **os.environ,
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "CALLS": str(self.calls_file),
            "COMMENTS": str(self.comments),
            "GITHUB_OUTPUT": str(self.outputs),
            "GITHUB_STEP_SUMMARY": str(folder / "summary"),
            "GITHUB_REPOSITORY": "acme/jobs",
        }

    def ran(
        self, script: str, shell: tuple[str, ...], **variables: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*shell, script], cwd=self.folder, env={**self.environment, **variables},
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip

    @property
    def calls(self) -> str:
        return self.calls_file.read_text(encoding="utf-8")

    @property
    def changes(self) -> list[str]:
        """The calls that change a comment."""
        lines = self.calls.splitlines()
        return [line for line in lines if re.match(r"gh pr comment|.*--(method|request) ", line)]

    def edit(self, name: str, before: str, after: str) -> None:
        file = self.folder / name
        text = file.read_text(encoding="utf-8")
        assert before in text
        file.write_text(text.replace(before, after), encoding="utf-8")


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


def on_github(runner: Runner, **given: str) -> int:
    """The exit code of the action's scripts but for the installation, as a runner calls them."""
    given_inputs = WORKFLOW["jobs"]["gate"]["steps"][-1]["with"] | given
    inputs = {
        f"inputs.{name}": str(given_inputs.get(name, declared.get("default")))
        for name, declared in ACTION["inputs"].items()
    }
    install, *steps = ACTION["runs"]["steps"]
    assert "pip install" in install["run"]
    for step in steps:
        outputs = dict(line.split("=") for line in runner.outputs.read_text("utf-8").splitlines())
        values = {
            **inputs,
            "github.token": "a-token",
            "github.event.number": "7",
            **{f"steps.check.outputs.{name}": value for name, value in outputs.items()},
        }
        variables = {name: resolved(text, values) for name, text in step["env"].items()}
        shell = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c")
        done = runner.ran(step["run"], shell, **variables)
        if done.returncode and not step.get("continue-on-error"):
            return done.returncode
    return 0


def resolved(text: str, values: Mapping[str, str]) -> str:
    """A text with its expressions replaced, as a runner does."""
    return re.sub(r"\$\{\{ (.*?) \}\}", lambda match: values[match[1]], str(text))


def on_gitlab(runner: Runner, **given: str) -> subprocess.CompletedProcess[str]:
    variables = {name: str(value) for name, value in TEMPLATE["variables"].items()}
    of_gitlab = {
        "CI_API_V4_URL": "https://gitlab.example.com/api/v4",
        "CI_PROJECT_ID": "3",
        "CI_MERGE_REQUEST_IID": "7",
    }
    assert "pip install" in TEMPLATE["before_script"][0]
    (script,) = TEMPLATE["script"]
    shell = ("sh", "-e", "-c")
    return runner.ran(script, shell, **{**variables, **of_gitlab, **given})


GITLAB: dict[str, Any] = {
    "HEADWAY_SPECS": "configs/orders.yaml configs/sensors-daily.yaml",
    "HEADWAY_BASELINE": "configs/headway.lock",
}


def test_the_workflow_names_inputs_that_the_action_has() -> None:
    given = WORKFLOW["jobs"]["gate"]["steps"][-1]["with"]
    required = {name for name, declared in ACTION["inputs"].items() if declared.get("required")}
    assert required <= set(given) <= set(ACTION["inputs"])
    assert WORKFLOW["permissions"]["pull-requests"] == "write"


def test_nothing_is_commented_where_nothing_changes(runner: Runner) -> None:
    assert on_github(runner) == 0
    assert runner.changes == []
    runner.comments.write_text("[]", encoding="utf-8")
    done = on_gitlab(runner, **GITLAB, HEADWAY_TOKEN="a-token")
    assert done.returncode == 0, done.stderr
    assert runner.changes == []
    assert "changes by more than 2%" in done.stdout
    assert "<testsuites" in (runner.folder / "headway.xml").read_text("utf-8")


def test_a_comment_is_taken_back_once_nothing_changes(runner: Runner) -> None:
    runner.comments.write_text("11\n", encoding="utf-8")
    assert on_github(runner) == 0
    runner.comments.write_text(json.dumps([{"id": 12, "body": f"{MARKER}\n"}]), encoding="utf-8")
    assert on_gitlab(runner, **GITLAB, HEADWAY_TOKEN="a-token").returncode == 0
    on_github_line, on_gitlab_line = runner.changes
    assert on_github_line == "gh api --method DELETE repos/acme/jobs/issues/comments/11"
    notes = "https://gitlab.example.com/api/v4/projects/3/merge_requests/7/notes"
    assert on_gitlab_line.endswith(f"--request DELETE {notes}/12")


def test_a_higher_rate_fails_and_is_commented(runner: Runner) -> None:
    runner.edit("configs/orders.yaml", "rate: 24k/s", "rate: 120k/s")
    assert on_github(runner) == 4
    assert runner.changes == ["gh pr comment 7 --body-file headway.md"]
    text = runner.calls[runner.calls.index(f"\n{MARKER}") + 1 :]
    headline, table = text.splitlines()[1], text[text.index("| job") :]
    # Two nodes of 0.192 an hour instead of one: 720 hours of 0.192 more.
    assert headline.startswith("**Headway: 276 per month (+138); ")
    assert table.splitlines()[0].startswith("| job | cost | planned | target |")
    assert "| orders | 138 -\\> 276 per month | 1.5" in table
    cost, latency = "138 per month: 0.384 per hour, was 0.192", "the locked setting ("
    assert table.index(cost) < table.index(latency)
    assert (runner.folder.parent / "summary").read_text("utf-8") == text[: text.index("</sub>") + 7]


def test_a_comment_that_is_there_is_replaced(runner: Runner) -> None:
    runner.edit("configs/orders.yaml", "rate: 24k/s", "rate: 120k/s")
    runner.comments.write_text("11\n", encoding="utf-8")
    assert on_github(runner) == 4
    notes = [{"id": 9, "body": "Looks good"}, {"id": 12, "body": f"{MARKER}\n**Headway**"}]
    runner.comments.write_text(json.dumps(notes), encoding="utf-8")
    done = on_gitlab(runner, **GITLAB, HEADWAY_TOKEN="a-token")
    assert done.returncode == 4
    assert "**Headway: 276 per month (+138); " in done.stdout
    on_github_line, on_gitlab_line = runner.changes
    assert on_github_line == (
        "gh api --method PATCH repos/acme/jobs/issues/comments/11 --field body=@headway.md"
    )
    assert "--request PUT --data-urlencode body@headway.md" in on_gitlab_line
    assert on_gitlab_line.endswith("/merge_requests/7/notes/12")


def test_without_a_token_gitlab_prints_and_calls_nobody(runner: Runner) -> None:
    runner.edit("configs/orders.yaml", "rate: 24k/s", "rate: 120k/s")
    done = on_gitlab(runner, **GITLAB)
    assert done.returncode == 4
    assert MARKER in done.stdout
    assert runner.calls == ""


def test_an_invalid_file_fails_and_leaves_the_comment_alone(runner: Runner) -> None:
    runner.edit("configs/orders.yaml", "rate: 24k/s", "rate: fast")
    runner.comments.write_text("11\n", encoding="utf-8")
    assert on_github(runner) == 2
    done = on_gitlab(runner, **GITLAB, HEADWAY_TOKEN="a-token")
    assert done.returncode == 2
    assert "configs/orders.yaml:12:" in done.stderr
    assert runner.changes == []


def test_without_a_lock_the_targets_are_commented(runner: Runner) -> None:
    for lock in runner.folder.rglob("headway.lock"):
        lock.unlink()
    assert on_github(runner, baseline="", specs="configs/orders.yaml") == 0
    assert runner.changes == ["gh pr comment 7 --body-file headway.md"]
    assert "**Headway: 138 per month; 1 job: every target is met**" in runner.calls
