"""What is installed: the wheel's content, what is required, and what works without the extras."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from zipfile import ZipFile

import pytest

from headway.cli.main import run
from tests.installation import EXTRAS, NAMES, PROJECT, required, without
from tests.profiler.event_log import AppLog, Query, write_plain
from tests.sources import ROOT, imported, modules

# What comes with a requirement, and what a requirement asks for.
BROUGHT_BY = {"py4j": "pyspark", "markupsafe": "jinja2", "anyio": "mcp"}
ASKED_FOR_BY = {"highspy": "cvxpy"}
PROFILE = "examples/word-count.profile.yaml"
PLAN = ("plan", PROFILE, "--rate", "24k/s", "--target", "p99 <= 2s")


def test_what_is_required_is_imported_and_nothing_else_is() -> None:
    found = {name.partition(".")[0] for tree in modules().values() for name in imported(tree)}
    others = found - set(sys.stdlib_module_names) - {"headway", "pytest"}
    assert {BROUGHT_BY.get(name, name) for name in others} == (
        required() | required(*EXTRAS) - set(ASKED_FOR_BY)
    )


def test_extras_hold_what_a_plain_installation_does_not() -> None:
    assert not required() & required(*EXTRAS)
    assert PROJECT["optional-dependencies"]["all"] == [f"headway[{','.join(EXTRAS)}]"]


def files_of_the_package() -> set[str]:
    return {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "headway").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_holds_the_package_and_its_data_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hatchling.build import build_wheel

    monkeypatch.chdir(ROOT)
    with ZipFile(tmp_path / build_wheel(str(tmp_path))) as wheel:
        names = set(wheel.namelist())
    inside = {name for name in names if name.startswith("headway/")}
    assert inside == files_of_the_package()
    assert {Path(name).suffix for name in inside} == {
        *(".py", ".typed", ".yaml", ".jinja", ".css", ".js", ".java", ".jar"),
    }
    about = {Path(name).name for name in names - inside}
    assert about == {"METADATA", "WHEEL", "RECORD", "LICENSE", "entry_points.txt"}


def test_the_source_distribution_holds_the_package_and_what_builds_its_jars(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hatchling.build import build_sdist

    monkeypatch.chdir(ROOT)
    with tarfile.open(tmp_path / build_sdist(str(tmp_path))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {name for name in names if name.startswith("headway/")} == files_of_the_package()
    assert {"scripts/build_jars.py", "Makefile", "constraints.txt"} < names


def test_the_audit_fails_for_a_version_that_its_service_does_not_know() -> None:
    # Without --strict, pip-audit finds "no known vulnerabilities" in what it could not look up.
    done = subprocess.run(
        ["make", "--dry-run", "audit"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    words = done.stdout.replace("\\\n", " ").splitlines()[-1].split()
    assert words[0].endswith("bin/pip-audit")
    assert {"--strict", "--no-deps", "--requirement", "constraints.txt"} <= {*words}


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if nothing of the extras were installed."""
    for name in required(*EXTRAS):
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.parametrize(
    ("arguments", "what", "extra"),
    [
        (["capacity", "configs/fleet.yaml"], "planning capacity needs cvxpy", "capacity"),
        ([*PLAN, "--relaxation"], "the convex relaxation needs cvxpy", "capacity"),
        (["profile", "LOG", "--tables", "TABLES"], "writing tables needs pyarrow", "logs"),
        (
            ["profile", "LOG", "--engine", "spark", "-o", "PROFILE"],
            "reading logs through Spark needs pandas and pyarrow",
            "logs",
        ),
        (["profile", "LZ4", "-o", "PROFILE"], "unpacking lz4 needs pyarrow", "logs"),
        (["profile", "SNAPPY", "-o", "PROFILE"], "unpacking snappy needs pyarrow", "logs"),
        (["mcp", "."], "headway mcp needs mcp", "mcp"),
    ],
    ids=["capacity", "relaxation", "tables", "spark", "lz4", "snappy", "mcp"],
)
@pytest.mark.usefixtures("plain")
def test_what_needs_an_extra_names_it(
    arguments: Sequence[str],
    what: str,
    extra: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(ROOT)
    write_plain(AppLog().add(Query()).lines, tmp_path / "LOG")
    (tmp_path / "LZ4").write_bytes(b"LZ4Block" + bytes(13))
    (tmp_path / "SNAPPY").write_bytes(b"\x82SNAPPY\x00" + bytes(12))
    words = [str(tmp_path / word) if word.isupper() else word for word in arguments]
    assert run(words) == 1
    printed = capsys.readouterr().err
    assert what in printed
    assert f"not installed: pip install 'headway[{extra}]'" in printed
    assert not (tmp_path / "PROFILE").exists()


@pytest.mark.usefixtures("plain")
def test_a_plain_installation_profiles_however_much_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = write_plain(AppLog().add(Query()).lines, tmp_path / "log")
    monkeypatch.setattr("headway.profiler.reading.IN_PROCESS_BYTES", 1000)
    assert run(["profile", str(log), "-o", str(tmp_path / "job.profile.yaml")]) == 0


def test_the_gate_runs_on_the_few_packages_that_its_page_lists() -> None:
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    listed = re.search(
        r"^pip install ([\w -]+)\npip install --no-deps \S+\.whl$", page, re.MULTILINE
    )
    assert listed is not None
    few = {NAMES.get(name, name) for name in listed[1].split()}
    assert few < required()
    commands = (
        ("validate", "configs/orders.yaml", "configs/sensors-daily.yaml"),
        ("check", "configs/orders.yaml", "--baseline", "configs/headway.lock"),
        ("check", "configs/orders.yaml", "--baseline", "configs/headway.lock", "--format", "junit"),
        PLAN,
        ("emit", "configs/orders.yaml", "--format", "kubeflow"),
    )
    for words in commands:
        done = without((required() | required(*EXTRAS)) - few, *words)
        assert done.returncode == 0, done.stderr
