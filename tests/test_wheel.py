"""What is published, installed in an empty environment: a wheel, and what CI adds to it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import requires
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.installation import EXTRAS, FEW_SETTINGS, PROJECT, required, without
from tests.profiler.event_log import AppLog, Query, write_plain
from tests.sources import ROOT

ACTION = ROOT / "examples" / "ci" / "github" / "action.yml"
PROFILE = "examples/word-count.profile.yaml"
_NO_NETWORK = ("Temporary failure in name resolution", "Network is unreachable", "No matching")

_PIP = "import sys\nfrom pip._internal.cli.main import main\nsys.exit(main())\n"


def done(
    words: Sequence[str] | str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, cwd=ROOT, env=env, shell=isinstance(words, str), capture_output=True, text=True,
        check=False, timeout=300,
    )  # fmt: skip


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from hatchling.build import build_wheel

    folder = tmp_path_factory.mktemp("dist")
    here = Path.cwd()
    os.chdir(ROOT)
    try:
        return folder / build_wheel(str(folder))
    finally:
        os.chdir(here)


def steps() -> dict[str, str]:
    """The scripts of the action by the names of their steps."""
    action = yaml.safe_load(ACTION.read_text(encoding="utf-8"))
    return {step["name"]: step["run"] for step in action["runs"]["steps"]}


@pytest.fixture(scope="module")
def empty(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The variables of an empty environment into which the action installs the wheel."""
    folder = tmp_path_factory.mktemp("empty")
    pip = pytest.importorskip("pip", reason="no pip for a new environment")
    venv.create(folder)
    # It gets the pip of this one: to unpack another takes seconds.
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "pip").symlink_to(Path(pip.__file__).parent)
    script = folder / "bin" / "pip"
    script.write_text(f"#!{folder}/bin/python -I\n{_PIP}", encoding="utf-8")
    script.chmod(0o755)
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    # What a few commands load is compiled as they load it; all of it takes longer than they do.
    # Of options that begin with "no", pip takes a false value for yes.
    env = {**os.environ, "PATH": path, "HEADWAY": str(wheel), "PIP_NO_COMPILE": "false"}
    env.pop("PYTHONPATH", None)
    found = done(steps()["install"], env)
    if found.returncode and any(text in found.stderr for text in _NO_NETWORK):
        pytest.skip("no package index to install from")
    assert found.returncode == 0, found.stderr
    return env


def test_the_action_checks_on_the_wheel_alone(empty: Mapping[str, str], tmp_path: Path) -> None:
    written = {name: str(tmp_path / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    script = steps()["check"].replace("headway.md", str(tmp_path / "headway.md"))
    inputs = {
        "SPECS": "configs/orders.yaml configs/sensors-daily.yaml",
        "BASELINE": "configs/headway.lock",
        "ARGUMENTS": "--max-cost 10%",
        "QUIET_BELOW": "2%",
    }
    found = done(["bash", "-eo", "pipefail", "-c", script], {**empty, **written, **inputs})
    assert found.returncode == 0, found.stdout + found.stderr
    assert "2 jobs: every target is met" in found.stdout
    assert Path(written["GITHUB_OUTPUT"]).read_text(encoding="utf-8") == "exit-code=0\n"


def test_the_commands_of_the_first_page_run_on_the_wheel_alone(empty: Mapping[str, str]) -> None:
    found = done(
        f"cd /tmp && headway plan {ROOT / PROFILE} --rate 24k/s --target 'p99 <= 2s'", empty
    )
    assert found.returncode == 0, found.stderr
    assert "1 node meets p99" in found.stdout
    where = done("cd /tmp && python -c 'import headway; print(headway.__file__)'", empty)
    assert str(ROOT) not in where.stdout


def test_the_jars_of_the_wheel_are_files_that_spark_can_load(empty: Mapping[str, str]) -> None:
    code = (
        "from headway.runtime.clock_source import clock_source_jar\n"
        "from headway.runtime.jars import shipped_jar\n"
        "print(clock_source_jar(), shipped_jar('headway.runtime.gate'), sep='\\n')"
    )
    found = done(["python", "-P", "-c", code], empty)
    assert found.returncode == 0, found.stderr
    jars = [Path(line) for line in found.stdout.splitlines()]
    assert all(jar.parts[-5:-2] == ("site-packages", "headway", "runtime") for jar in jars)
    assert [jar.read_bytes() for jar in jars] == [
        (ROOT / Path(*jar.parts[-4:])).read_bytes() for jar in jars
    ]


def test_the_hooks_run_on_the_wheel_alone(empty: Mapping[str, str]) -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    for hook in hooks:
        entry = hook["entry"].replace("headway.lock", "configs/headway.lock")
        found = done(f"{entry} configs/orders.yaml", empty)
        assert found.returncode == 0, found.stdout + found.stderr


def test_the_version_in_texts_is_that_of_the_wheel(wheel: Path) -> None:
    for name in (
        *("examples/ci/github/workflow.yml", "examples/ci/gitlab.yml"),
        *("docs/ci.md", "docs/start.md", "README.md"),
    ):
        named = re.findall(r"headway-[\d.]+-py3-none-any\.whl", (ROOT / name).read_text("utf-8"))
        assert set(named) == {wheel.name}, name


def test_what_the_image_installs_is_what_its_commands_need(tmp_path: Path) -> None:
    write_plain(AppLog().add(Query(num_batches=40)).lines, tmp_path / "log")
    missing = required(*EXTRAS)
    made = tmp_path / "job.profile.yaml"
    for words in (
        ("profile", str(tmp_path / "log"), "-o", str(made)),
        (
            "plan",
            str(made),
            "--rate",
            "1k/s",
            "--target",
            "p99 <= 9s",
            "-o",
            str(tmp_path / "a.html"),
        ),
        ("backtest", str(tmp_path / "log")),
        ("--help",),
    ):
        found = without(missing, *words, before=FEW_SETTINGS if words[0] == "plan" else "")
        assert found.returncode in (0, 2) if words[0] == "backtest" else found.returncode == 0, (
            found.stderr
        )


def pinned() -> set[str]:
    """Names in constraints.txt, each with one version."""
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    versions = [
        re.fullmatch(r'([\w.-]+)==[\w.]+; python_version < "[\d.]+"', line) for line in lines
    ]
    assert all(versions), "a line without a version"
    return {canonicalize_name(version[1]) for version in versions if version}


def with_their_requirements(names: Iterable[str]) -> set[str]:
    """Packages, and all that they require here without extras, by their installed metadata."""
    found: set[str] = set()
    ahead = [canonicalize_name(name) for name in names]
    while ahead:
        name = ahead.pop()
        if name not in found:
            found.add(name)
            wanted = (Requirement(text) for text in requires(name) or ())
            ahead += [
                canonicalize_name(one.name)
                for one in wanted
                if one.marker is None or one.marker.evaluate({"extra": ""})
            ]
    return found


def test_each_package_of_the_image_has_a_pinned_version() -> None:
    steps = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    installs = re.findall(r"^RUN pip (?:install|wheel) ([^&\n]+)", steps, re.MULTILINE)
    assert len(installs) == 3
    for words in map(str.split, installs):
        if "--no-deps" in words:
            # What builds the wheel is installed before, not fetched by pip.
            assert "--no-build-isolation" in words
            continue
        at = words.index("--constraint")
        assert words[at + 1].endswith("/constraints.txt")
        names = words[at + 2 :]
        if names == ["/dist/headway-*.whl"]:
            names = [Requirement(text).name for text in PROJECT["dependencies"]]
        assert with_their_requirements(names) <= pinned()


def test_the_image_copies_what_the_wheel_is_made_of() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    kept = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    assert kept == {"headway", "LICENSE", "README.md", "constraints.txt", "pyproject.toml"}
    assert all((ROOT / name).exists() for name in kept)
    assert sys.version_info >= (3, 11)
