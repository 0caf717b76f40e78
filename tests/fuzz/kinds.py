"""Good files of every kind that a command reads, and the commands that read them."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

import headway
from headway.cli.main import run
from headway.domain import Configuration
from headway.domain.tuner import Phase, TunerState
from headway.formats.exploration_file import ExplorationState, load_state
from headway.formats.setting_file import load_setting
from headway.formats.tuner_files import load_tuner
from headway.spec.kinds import KINDS
from headway.spec.spec_file import scaffold
from tests.profiler.event_log import AppLog, DStreams, Query, Work

ROOT = Path(__file__).parents[2]
_SETTING: dict[str, Any] = {
    "executors": 1, "cores_per_executor": 2, "shuffle_partitions": 4, "trigger_s": 1.0,
    "max_offsets_per_trigger": None,
}  # fmt: skip
_QUESTION = ExplorationState(rate_per_s=1000.0, target="p99 <= 3s")
_TARGET = ("--target", "p99 <= 3s")
_AT = ("--rate", "5k/s", *_TARGET)


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of file: the name and the bytes of a good one, and what reads it.

    ``form`` says how it is changed: as YAML, JSON, lines of JSON, or only bytes. In commands FILE
    is the file, OUT a file to write, and other capitals good files of other kinds.
    """

    name: str
    form: str
    seed: bytes
    commands: tuple[tuple[str, ...], ...] = ()
    calls: tuple[Callable[[Path], object], ...] = ()


def _text_of(*arguments: str) -> bytes:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        code = run(arguments)
    assert code in (0, 3), (arguments, code)
    return out.getvalue().encode()


def _zip(members: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return packed.getvalue()


def _logs() -> dict[str, bytes]:
    streaming = AppLog(app_id="app-1").add(Query(num_batches=14)).lines
    other = AppLog(app_id="app-2").add(Query(num_batches=14, rate_per_s=30_000.0, seed=2)).lines
    batch = AppLog(app_id="app-3")
    batch.add_job([Work(rows=(5, 6)), Work(task_s=(0.5,), parents=(0,))], 1_790_000_020.0)
    dstreams = AppLog(app_id="app-4").add_dstreams(DStreams(num_batches=12)).lines
    named = {"log": streaming, "other": other, "batch": batch.lines, "dstreams": dstreams}
    return {name: "\n".join(lines).encode() + b"\n" for name, lines in named.items()}


def good_files(folder: Path) -> dict[str, str]:
    """Files that commands need besides the one that is damaged, by their word in commands."""
    from headway.formats.as_json import json_text

    logs = _logs()
    places = {}
    for name, data in logs.items():
        places[name.upper()] = str(folder / name)
        (folder / name).write_bytes(data)
    for word, log in (("PROFILE", "log"), ("BATCHJOB", "batch"), ("STREAM", "dstreams")):
        file = folder / f"{log}.profile.yaml"
        places[word] = str(file)
        assert run(["profile", places[log.upper()], "-o", str(file)]) == 0
    plan = headway.plan(places["PROFILE"], rate="5k/s", target="p99 <= 3s")
    late = headway.plan(places["BATCHJOB"], target="deadline <= 10m")
    for word, answer in (("PLAN", plan), ("LATE", late)):
        places[word] = str(folder / f"{word.lower()}.json")
        Path(places[word]).write_text(json_text(answer.to_dict()))
    spec = folder / "orders.yaml"
    spec.write_text(scaffold("StreamingJob", name="orders", file="orders.yaml"))
    places["SPEC"], places["LOCK"] = str(spec), str(folder / "orders.lock")
    assert run(["lock", str(spec), "-o", places["LOCK"]]) == 0
    return places


def kinds(places: Mapping[str, str]) -> list[Kind]:
    """Every kind of file, from the good ones."""
    files = {
        word: Path(place).read_bytes() for word, place in places.items() if Path(place).is_file()
    }
    planned = ("emit", "FILE", "--format")
    found = [
        Kind(
            name="job.profile.yaml",
            form="yaml",
            seed=files["PROFILE"],
            commands=(
                ("predict", "FILE", "--json"),
                ("predict", "FILE", "--rate", "5k/s", "--executors", "3"),
                ("ordered", "FILE", "--keys", "KEYS", "--json"),
                ("windows", "FILE", "--window", "10s"),
                ("predict", "FILE", "--mode", "real-time"),
                ("plan", "FILE", *_AT, "--format", "json"),
                ("diff", "FILE", "PROFILE", "--json"),
            ),
        ),
        Kind(
            name="batch.profile.yaml",
            form="yaml",
            seed=files["BATCHJOB"],
            commands=(("plan", "FILE", "--target", "deadline <= 10m"), ("predict", "FILE")),
        ),
        Kind(
            name="stream.profile.yaml",
            form="yaml",
            seed=files["STREAM"],
            commands=(("predict", "FILE", "--json"), ("plan", "FILE", *_AT)),
        ),
        Kind(
            name="plan.json",
            form="json",
            seed=files["PLAN"],
            commands=(
                (*planned, "pyspark"), (*planned, "kubeflow"), (*planned, "emr"),
                ("explain", "FILE"), ("report", "FILE", "-o", "OUT"),
                ("simulate", "FILE", "--rate-trace", "TRACE", "--runs", "1"),
                ("diff", "FILE", "PLAN", "--json"),
            ),
        ),
        Kind(
            name="late.json",
            form="json",
            seed=files["LATE"],
            commands=((*planned, "spark-submit"), ("explain", "FILE")),
        ),
        Kind(
            name="headway.lock",
            form="yaml",
            seed=files["LOCK"],
            commands=tuple(
                ("check", "SPEC", "--baseline", "FILE", "--format", one)
                for one in ("text", "junit", "github")
            ),
        ),
        Kind(
            name="keys.csv",
            form="bytes",
            seed=b"key,count\na,100\nb,50\nc,5\n",
            commands=(("ordered", "PROFILE", "--keys", "FILE", "-o", "OUT"),),
        ),
        Kind(
            name="keys.jsonl",
            form="lines",
            seed=b'{"key": "a", "count": 100}\n{"key": "b", "count": 50}\n',
            commands=(("ordered", "PROFILE", "--keys", "FILE", "--json"),),
        ),
        Kind(
            name="trace.csv",
            form="bytes",
            seed=b"time,rate\n0s,5k/s\n1m,8k/s\n2m,5k/s\n",
            commands=(("simulate", "PLAN", "--rate-trace", "FILE", "--runs", "1"),),
        ),
        Kind(
            name="prometheus.json",
            form="json",
            seed=json.dumps(
                {"data": {"result": [{"values": [[0, "5000"], [60, "8000"], [120, "5000"]]}]}}
            ).encode(),
            commands=(("simulate", "PLAN", "--rate-trace", "FILE", "--runs", "1", "-o", "OUT"),),
        ),
        Kind(
            name="log",
            form="lines",
            seed=files["LOG"],
            commands=(
                ("profile", "FILE", "-o", "OUT"),
                ("profile", "FILE", "--check", "--json"),
                ("watch", "FILE", "--profile", "PROFILE", *_TARGET, "--once", "--json"),
            ),
        ),
        Kind(
            name="batch.log",
            form="lines",
            seed=files["BATCH"],
            commands=(("profile", "FILE", "-o", "OUT"),),
        ),
        Kind(
            name="dstreams.log",
            form="lines",
            seed=files["DSTREAMS"],
            commands=(("profile", "FILE", "-o", "OUT"),),
        ),
        Kind(
            name="words.headway.jsonl",
            form="lines",
            seed=b'{"Event":"HeadwayRecorderStart"}\n' + files["OTHER"],
            commands=(
                ("profile", "FILE", "-o", "OUT"),
                ("watch", "FILE", "--profile", "PROFILE", *_TARGET, "--once"),
            ),
        ),
        Kind(
            name="backtested",
            form="lines",
            seed=files["OTHER"],
            commands=(("backtest", "LOG", "FILE", "--json"),),
        ),
        Kind(
            name="logs.zip",
            form="bytes",
            seed=_zip({"eventlog": files["LOG"]}),
            commands=(("profile", "FILE", "-o", "OUT"),),
        ),
        Kind(
            name="server.json",
            form="server",
            seed=json.dumps({"id": "app-1", "attempts": [{"completed": True}]}).encode(),
            commands=(("profile", "SERVER", "-o", "OUT"),),
        ),
        Kind(
            name="rolling",
            form="rolling",
            seed=files["LOG"],
            commands=(("profile", "FILE", "-o", "OUT"), ("profile", "FILE", "--check")),
        ),
        Kind(
            name="orders.tuner.jsonl",
            form="lines",
            seed=b'{"at_s": 1.0, "event": "applied", "change": {"number": 1, "kind": "executors", '
            b'"reason": "rate", "now": %b, "then": %b, "began_s": 1.0, "deadline_s": 2.0}}\n'
            % ((json.dumps(_SETTING).encode(),) * 2),
            commands=(("watch", "FILE", "--explain", "1", "--json"),),
        ),
        Kind(
            name="orders.tuner.json",
            form="json",
            seed=msgspec.json.encode(
                TunerState(
                    profile_hash="a", target="p99 <= 3s", phase=Phase.HOLD,
                    original=Configuration(**_SETTING), last_good=Configuration(**_SETTING),
                    changed_at_s=(1.0,), daily_per_s={1: 2.0},
                )
            ),
            calls=(load_tuner,),
        ),
        Kind(
            name="exploration.json",
            form="json",
            seed=json.dumps(
                {
                    "schema": "headway.exploration/v1", "rate_per_s": 1000.0,
                    "target": "p99 <= 3s", "queue": [{**_SETTING, "rate_per_s": 5.0}],
                    "runs": [
                        {
                            "setting": {**_SETTING, "rate_per_s": 5.0}, "duration_s": 1.0,
                            "recording": "run-001.jsonl", "query_id": "q",
                        }
                    ],
                }
            ).encode(),
            calls=(lambda path: load_state(path, _QUESTION),),
        ),
        Kind(
            name="setting.json",
            form="json",
            seed=json.dumps({"number": 1, "configuration": _SETTING, "recording": "x"}).encode(),
            calls=(load_setting,),
        ),
        Kind(
            name="gate.jsonl",
            form="lines",
            seed=b'{"batch":{"at_s":1.0,"name":"a","batch_id":0,"rows":5,"predicted_s":1.0,'
            b'"observed_s":1.0}}\n' * 3,
            commands=(("schedule", "--decisions", "FILE"),),
        ),
        Kind(
            name="check.json",
            form="json",
            seed=_text_of("check", places["SPEC"], "--baseline", places["LOCK"], "--json"),
            commands=(("report", "FILE", "-o", "OUT"),),
        ),
        Kind(
            name="prediction.json",
            form="json",
            seed=_text_of("predict", places["PROFILE"], "--json"),
            commands=(("report", "FILE", "-o", "OUT"),),
        ),
        Kind(
            name="app.yaml",
            form="yaml",
            seed=_text_of(
                "emit", places["PLAN"], "--format", "kubeflow", "--name", "orders",
                "--main", "local:///a.py", "--image", "a",
            ),
            commands=(
                ("emit", "PLAN", "--patch", "FILE", "--write"),
                ("emit", "PLAN", "--patch", "FILE"),
            ),
        ),
        Kind(
            name="spark-defaults.conf",
            form="bytes",
            seed=b"spark.executor.memory 4g\nspark.executor.cores 4\n# why\nspark.task.cpus 1\n",
            commands=(
                ("emit", "PLAN", "--format", "spark-defaults", "--diff-from", "FILE"),
                ("emit", "PLAN", "--patch", "FILE"),
            ),
        ),
    ]  # fmt: skip
    for kind in KINDS:
        commands: list[tuple[str, ...]] = [("validate", "FILE")] * 4
        if kind in ("OrderedPipeline", "MicroBatchPipeline"):
            commands.append(("predict", "FILE", "--json"))
        if kind in ("StreamingJob", "BatchJob"):
            commands.append(("plan", "FILE", "--format", "json"))
        if kind == "Schedule":
            commands.append(("schedule", "FILE", "--json"))
        found.append(
            Kind(
                name=f"{kind}.yaml",
                form="yaml",
                seed=scaffold(kind, name="x", file="x.yaml").encode(),
                commands=tuple(commands),
            )
        )
    return found


#: Calls of the library whose numbers and texts are replaced by hostile ones.
CALLS: Mapping[str, Mapping[str, Any]] = {
    "predict": {"rate": "5k/s", "trigger": 1.0, "executors": 2, "cores": 4, "partitions": 8},
    "plan": {"rate": "5k/s", "target": "p99 <= 3s", "max_nodes": 3, "node_cores": 4},
    "ordered": {"rate": "5k/s", "executors": 2, "cores": 2, "partitions": 8},
}


def call_arguments(name: str) -> dict[str, Any]:
    """Good arguments of a call."""
    return copy.deepcopy(dict(CALLS[name]))
