"""A patched file, read back, says what the plan says and all that it said before; or no patch."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from headway.cli.main import run
from headway.emitters.patch import patch
from headway.emitters.submission import Submission
from headway.errors import InputError
from headway.formats.as_json import json_text, plan_json
from tests.emit.test_patch import BUNDLE, KUBEFLOW
from tests.factories import a_plan
from tests.seeds import examples

FLOW = """\
apiVersion: sparkoperator.k8s.io/v1beta2
kind: SparkApplication
metadata: {name: orders}
spec:
  sparkConf: {}   # none yet
  executor: {cores: 1, # one
    instances: 7 # many {
  }
"""


def patch_of(text: str, job: str | None = None) -> str:
    return patch(text, a_plan(), name="f.yaml", submission=Submission(), job=job)[0]


def executor_of(text: str) -> object:
    return next(yaml.safe_load_all(text))["spec"]["executor"]


def test_a_comment_at_the_end_of_a_flow_mapping_swallows_nothing() -> None:
    after = patch_of(FLOW)
    assert executor_of(after) == {"cores": 4, "instances": 2, "memory": "8g"}
    assert "# one\n" in after
    assert '    instances: 2, memory: "8g" # many {\n  }\n' in after
    assert patch_of(after) == after


@pytest.mark.parametrize(
    "executor",
    [
        "{}",
        "{ }",
        "{ # none\n  }",
        "{cores: 1,}",
        "{cores: 1, # one\n  }",
        "{cores: 1 # }\n  }",
        "{cores: 1, labels: {a: b} # }\n , }",
        "{cores: 1, deleteOnTermination: }",
        "{cores: 1, deleteOnTermination }",
        '{"cores": 1}',
        "\n    # all to come",
        "# all to come",
        "~ # all to come",
        "null",
        "\n    cores: 1\n    # the last word",
        "\n    cores: 1\n    env: |\n      text\n\n",
        "\n    cores: # how many\n",
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_every_way_to_write_a_mapping_is_read_back_as_planned(executor: str, newline: str) -> None:
    head, _, _ = FLOW.partition("  executor:")
    text = f"{head}  executor: {executor}\n  driver: {{cores: 1}} # the driver\n"
    text = text.replace("\n", newline)
    after = patch_of(text)
    before = next(yaml.safe_load_all(text))["spec"]
    said = next(yaml.safe_load_all(after))["spec"]
    planned = {"cores": 4, "instances": 2, "memory": "8g"}
    assert said == {
        **before,
        "executor": {**(before["executor"] or {}), **planned},
        "sparkConf": said["sparkConf"],
    }
    assert after.count("#") == text.count("#")
    assert after.count("\r\n") == (after.count("\n") if newline == "\r\n" else 0)
    assert patch_of(after) == after


def test_a_byte_order_mark_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan, file = tmp_path / "plan.json", tmp_path / "f.yaml"
    plan.write_text(json_text(plan_json(a_plan())))
    before = b"\xef\xbb\xbf" + KUBEFLOW.replace("\n", "\r\n").encode()
    file.write_bytes(before)
    assert run(["emit", str(plan), "--patch", str(file), "--write"]) == 0
    after = file.read_bytes()
    assert after.startswith(b"\xef\xbb\xbf# Deployed")
    assert after.count(b"\n") == after.count(b"\r\n") == before.count(b"\n") + 2
    assert "patched" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "instances: 10",
            "instances: {{ .Values.instances }}",
            "f.yaml:14:20: instances is filled in by a template, {{ .Values.instances }}",
        ),
        (
            "instances: 10",
            'instances: "{{ .Values.instances }}"',
            'instances is filled in by a template, "{{',
        ),
        ("instances: 10", "instances: ${N}", "instances is filled in by a template, ${N}"),
        ("instances: 10", "instances: $N", "instances is filled in by a template, $N"),
        (
            (
                "executor:\n        cores: 4\n        instances: 10 # too many?\n"
                "        labels: {a: b}"
            ),
            "executor: {{ toYaml .Values.executor }}",
            "f.yaml:12:15: executor is filled in by a template",
        ),
        (
            "    # sizes\n",
            "    {{- if .Values.sizes }}\n    # sizes\n",
            "{{ in line 11 looks like a template: render it, then patch the result",
        ),
        (
            "cores: 4\n",
            "cores: 4\n        instances: 3\n",
            "f.yaml:15:9: instances occurs twice in one mapping, first in line 14",
        ),
        (
            "kind: SparkApplication\n",
            "kind: SparkApplication\nkind: SparkApplication\n",
            "f.yaml:4:1: kind occurs twice in one mapping, first in line 3",
        ),
        (
            "spec:\n",
            "x: &x {executor: {labels: {a: b}}}\nspec:\n    <<: *x\n",
            "executor",
        ),
    ],
)
def test_what_is_not_the_files_to_say_is_refused(old: str, new: str, expected: str) -> None:
    assert old in KUBEFLOW
    text = KUBEFLOW.replace(old, new)
    if "<<" in new:
        # What is merged in is not in the file's own place: adding beside would hide the rest.
        start = text.index("    executor:")
        text = text[:start] + text[text.index("    driver:") :]
    with pytest.raises(InputError) as caught:
        patch_of(text)
    assert expected in str(caught.value)


def test_a_template_elsewhere_does_not_matter() -> None:
    text = KUBEFLOW.replace("type: Python", 'type: Python\n    image: "{{ .Values.image }}"')
    assert '"{{ .Values.image }}"' in patch_of(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (BUNDLE.replace("num_workers: 20", "autoscale: {max_workers: 9}"), "autoscale contradicts"),
        (
            BUNDLE.replace("num_workers: 20", "num_workers: ${var.workers}"),
            "num_workers is filled in by a template, ${var.workers}",
        ),
        (
            BUNDLE.replace("new_cluster:\n            num_workers: 20", "new_cluster: &c\n"
                           "            num_workers: 20").replace(
                "new_cluster:\n            num_workers: 1\n", "new_cluster: *c\n"
            ),
            "shared by an anchor",
        ),
    ],
)  # fmt: skip
def test_a_bundle_that_says_otherwise_is_refused(text: str, expected: str) -> None:
    with pytest.raises(InputError) as caught:
        patch_of(text, job="orders")
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: &a [*a]\n", "inside its own anchor"),
        (
            "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
            + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 10)}]\n" for a, b in zip(
                "abcdefgh", "bcdefghi", strict=True)),
            "aliases make it too large",
        ),
    ],
)  # fmt: skip
def test_aliases_that_unfold_without_end_are_refused(text: str, expected: str) -> None:
    with pytest.raises(InputError) as caught:
        patch_of(text)
    assert expected in str(caught.value)


WORDS = st.sampled_from(["a", "b b", "c: d", "# e", "}", "{", "é", "0"])


@st.composite
def manifests(draw: st.DrawFn) -> str:
    """A manifest whose executor is written in some style, with comments wherever they may be."""

    def comment() -> str:
        return draw(st.one_of(st.just(""), WORDS.map(lambda word: f" # {word}")))

    keys = draw(st.lists(st.sampled_from(["cores", "instances", "memory", "labels"]), unique=True))
    values = {"cores": "1", "instances": "9", "memory": "'1g'", "labels": "{a: b}"}
    if draw(st.booleans()):
        pairs = [f"{key}: {values[key]},{comment()}\n      " for key in keys]
        executor = f"{{{comment()}\n      {''.join(pairs)}}}{comment()}\n"
    elif keys:
        pairs = [f"      {key}: {values[key]}{comment()}\n" for key in keys]
        executor = f"{comment()}\n{''.join(pairs)}"
    else:
        executor = f"{comment()}\n"
    head, _, _ = FLOW.partition("  executor:")
    return f"{head}  executor: {executor}  driver: {{cores: 1}}{comment()}\n"


@examples(30, 200)
@given(text=manifests(), newline=st.sampled_from(["\n", "\r\n"]))
def test_comments_stay_and_values_are_read_back(text: str, newline: str) -> None:
    text = text.replace("\n", newline)
    after = patch_of(text)
    before, said = yaml.safe_load(text)["spec"]["executor"], executor_of(after)
    assert said == {**(before or {}), "cores": 4, "instances": 2, "memory": "8g"}
    comments = [line.partition(" # ")[2] for line in text.splitlines() if " # " in line]
    assert [line.partition(" # ")[2] for line in after.splitlines() if " # " in line] == comments
