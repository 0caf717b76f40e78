"""What is installed: the wheel's content, what is required, and what works without the extras."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from zipfile import ZipFile

import pytest

from headway.cli.main import run
from tests.installation import EXTRAS, PROJECT, required
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
    together, *others = PROJECT["optional-dependencies"]["all"]
    assert together == f"headway[{','.join(EXTRAS)}]"
    # The plugin imports it, in a process that pytest started.
    assert [requirement.partition(">")[0] for requirement in others] == ["pytest"]


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
    # A test that make runs would also print the folder that this make is in.
    words = ["make", "--dry-run", "--no-print-directory", "audit"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
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
        (
            ["capacity", "configs/fleet.yaml"],
            "planning capacity needs cvxpy, highspy and scipy",
            "capacity",
        ),
        ([*PLAN, "--relaxation"], "the convex relaxation needs cvxpy", "capacity"),
        (["profile", "LOG", "--tables", "TABLES"], "writing tables needs pyarrow", "logs"),
        (
            ["profile", "LOG", "--engine", "spark", "-o", "PROFILE"],
            "reading logs through Spark needs pyspark, pandas and pyarrow",
            "spark",
        ),
        (["demo", "--quick", "-o", "DEMO"], "the demonstration needs pyspark", "spark"),
        (["explore", "examples/exploring/counts.yaml"], "running Spark needs pyspark", "spark"),
        (["profile", "LZ4", "-o", "PROFILE"], "unpacking lz4 needs pyarrow", "logs"),
        (["profile", "SNAPPY", "-o", "PROFILE"], "unpacking snappy needs pyarrow", "logs"),
        (["mcp", "."], "headway mcp needs mcp", "mcp"),
    ],
    ids=["capacity", "relaxation", "tables", "spark", "demo", "explore", "lz4", "snappy", "mcp"],
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
    # The demonstration first says whether the machine is busy.
    (line,) = (line for line in capsys.readouterr().err.splitlines() if "note:" not in line)
    assert what in line
    assert line.endswith(f"not installed: pip install 'headway[{extra}]'")
    assert not any((tmp_path / name).exists() for name in ("PROFILE", "DEMO"))


@pytest.mark.usefixtures("plain")
def test_a_plain_installation_profiles_however_much_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = write_plain(AppLog().add(Query()).lines, tmp_path / "log")
    monkeypatch.setattr("headway.profiler.reading.IN_PROCESS_BYTES", 1000)
    assert run(["profile", str(log), "-o", str(tmp_path / "job.profile.yaml")]) == 0
