"""A real History Server, and a small one for what a real one does not do on request."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from headway.profiler.logs.limits import UnpackLimits
from headway.profiler.logs.sources import find_event_logs
from headway.profiler.logs.unpacking import Unpacker, unpack
from tests.profiler.event_log import write_plain, write_rolling

STARTS_WITHIN_S = 60.0
# It answers a few times: neither compiled twice nor collected beside.
QUICK_TO_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


def text_of(folder: Path) -> str:
    return "".join(part.read_text() for part in sorted(folder.iterdir()))


def application(identity: str, attempt: str | None = None) -> list[str]:
    """As little of a log as a History Server lists."""
    started_ms = 1_790_000_000_000 + int(attempt or 0)
    named = {"App Name": "orders", "App ID": identity, "Timestamp": started_ms, "User": "me"}
    if attempt is not None:
        named["App Attempt ID"] = attempt
    events = [
        {"Event": "SparkListenerLogStart", "Spark Version": "4.0.1"},
        {"Event": "SparkListenerApplicationStart", **named},
        {"Event": "SparkListenerApplicationEnd", "Timestamp": started_ms + 90_000},
    ]
    return [json.dumps(event, separators=(",", ":")) for event in events]


FIRST = application("application_7_0001", "1")
SECOND = application("application_7_0001", "2")
GROWING = application("local-7")[:-1]


@pytest.fixture(scope="module")
def history_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a History Server that knows two applications, one of them tried twice."""
    import pyspark

    folder = tmp_path_factory.mktemp("event-logs")
    write_plain(FIRST, folder / "application_7_0001_1")
    write_rolling(SECOND, folder / "eventlog_v2_application_7_0001_2", numbers=(1, 2, 3))
    write_plain(GROWING, folder / "local-7.inprogress")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = Path(pyspark.__file__).parent
    options = {
        "spark.history.ui.port": port,
        "spark.history.fs.logDirectory": folder.as_uri(),
        "spark.history.fs.update.interval": "1s",
    }
    java_options = (*(f"-D{key}={to}" for key, to in options.items()), *QUICK_TO_START)
    with (folder.parent / "history-server.log").open("wb") as output:
        server = subprocess.Popen(
            [home / "bin" / "spark-class", "org.apache.spark.deploy.history.HistoryServer"],
            env=os.environ
            | {
                "SPARK_HOME": str(home),
                "SPARK_LOCAL_IP": "127.0.0.1",
                "SPARK_HISTORY_OPTS": " ".join(java_options),
            },
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    address = f"http://127.0.0.1:{port}"
    try:
        wait_for_applications(address, 2, server)
        yield address
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def wait_for_applications(
    address: str, num_applications: int, server: subprocess.Popen[bytes]
) -> None:
    give_up_at = time.monotonic() + STARTS_WITHIN_S
    while server.poll() is None and time.monotonic() < give_up_at:
        try:
            with urllib.request.urlopen(f"{address}/api/v1/applications", timeout=5) as answer:
                if len(json.load(answer)) == num_applications:
                    return
        # Until its API is there, it answers with a page.
        except (OSError, ValueError):
            pass
        time.sleep(0.2)
    pytest.fail("the History Server did not start")


@pytest.mark.jvm
def test_a_real_history_server_sends_every_attempt_of_an_application(
    history_server: str, tmp_path: Path
) -> None:
    tried_twice = f"{history_server}/history/application_7_0001"
    addresses = (
        f"{history_server}/history/local-7/jobs/",
        f"{tried_twice}/2/StreamingQuery/?token=hush",
        f"{history_server}/api/v1/applications/application_7_0001/1/logs",
        tried_twice,
    )
    logs, failures = find_event_logs(addresses)
    assert failures == ()
    assert [log.name for log in logs] == [
        f"{history_server}/history/local-7",
        f"{tried_twice}/2",
        f"{tried_twice}/1",
    ]
    calls: list[tuple[int, int]] = []
    result = unpack(logs, tmp_path, on_progress=lambda *now: calls.append(now))
    assert (result.logs, result.pending, result.failures) == (dict(enumerate(logs)), {}, [])
    for number, lines in enumerate((GROWING, SECOND, FIRST)):
        assert text_of(tmp_path / f"app={number}").splitlines() == lines
    assert [log.in_progress for log in logs] == [True, False, False]
    assert calls[-1][0] == calls[-1][1] > 1000
    assert not (tmp_path / "_fetched").exists()


@pytest.mark.jvm
@pytest.mark.statistical
def test_a_real_history_server_says_what_it_has(history_server: str) -> None:
    addresses = (
        f"{history_server}/",
        f"{history_server}/history/local-8",
        f"{history_server}/history/application_7_0001/3/jobs/",
    )
    logs, failures = find_event_logs(addresses)
    assert logs == ()
    assert [failure.name for failure in failures] == list(addresses)
    none, unknown, third = (failure.why for failure in failures)
    assert none.startswith("the address names no application")
    assert unknown.startswith("the server has no application local-8")
    for why in (none, unknown):
        assert "local-7" in why
        assert "application_7_0001" in why
    assert third.startswith("the application has no attempt 3")


Answer = Callable[[BaseHTTPRequestHandler], object]


class SmallServer:
    """Answers by path; keeps what was asked, with the credentials that came along."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.asked: list[tuple[str, str | None]] = []
        small_server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                small_server.asked.append((self.path, self.headers.get("Authorization")))
                answer = small_server.answers.get(self.path)
                if answer is None:
                    self.send_error(404)
                else:
                    answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        self.host = f"127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def server() -> Iterator[SmallServer]:
    small_server = SmallServer()
    yield small_server
    small_server.close()


@pytest.fixture
def other_server() -> Iterator[SmallServer]:
    small_server = SmallServer()
    yield small_server
    small_server.close()


def sends(body: bytes, kind: str = "application/octet-stream", promised: int = 0) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(promised or len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def redirects(to: str) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(302)
        handler.send_header("Location", to)
        handler.end_headers()

    return answer


def status(code: int) -> Answer:
    return lambda handler: handler.send_error(code)


def zipped(files: dict[str, str]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return target.getvalue()


APPLICATION = json.dumps({"id": "app-1", "attempts": [{"completed": True}]}).encode()
API = "/api/v1/applications/app-1"


def unpacked(address: str, folder: Path, limits: UnpackLimits | None = None) -> Unpacker:
    logs, failures = find_event_logs([address])
    assert failures == ()
    return unpack(logs, folder, limits=limits or UnpackLimits())


def find_refusal(address: str) -> str:
    logs, (failure,) = find_event_logs([address])
    assert logs == ()
    assert "hush" not in failure.name + failure.why
    assert (failure.name + failure.why).isprintable()
    return failure.why


def test_a_server_behind_a_prefix_is_asked_there(server: SmallServer, tmp_path: Path) -> None:
    server.answers[f"/my/history{API}"] = sends(APPLICATION)
    server.answers[f"/my/history{API}/logs"] = sends(zipped({"app-1": "{}\n"}))
    result = unpacked(f"http://{server.host}/my/history/history/app-1/jobs", tmp_path)
    assert result.logs[0].name == f"http://{server.host}/my/history/history/app-1"
    assert text_of(tmp_path / "app=0") == "{}\n"


def test_user_and_password_are_sent_but_never_shown(server: SmallServer, tmp_path: Path) -> None:
    server.answers[API] = sends(APPLICATION)
    server.answers[f"{API}/logs"] = sends(zipped({"app-1": "{}\n"}))
    result = unpacked(f"http://me:hush%40@{server.host}/history/app-1", tmp_path)
    expected = "Basic " + base64.b64encode(b"me:hush@").decode()
    assert server.asked == [(API, expected), (f"{API}/logs", expected)]
    assert "hush" not in repr(result)


def test_redirects_take_user_and_password_to_the_same_server_only(
    server: SmallServer, other_server: SmallServer, tmp_path: Path
) -> None:
    server.answers[API] = redirects("/there")
    server.answers["/there"] = sends(APPLICATION)
    server.answers[f"{API}/logs"] = redirects(f"http://{other_server.host}/zip")
    other_server.answers["/zip"] = sends(zipped({"app-1": "{}\n"}))
    unpacked(f"http://me:hush@{server.host}/history/app-1", tmp_path)
    assert text_of(tmp_path / "app=0") == "{}\n"
    assert all(credentials for _, credentials in server.asked)
    assert other_server.asked == [("/zip", None)]


@pytest.mark.parametrize("to", ["file:///etc/passwd", "ftp://127.0.0.1/x", "/round"])
def test_redirects_lead_nowhere_but_to_http(server: SmallServer, to: str) -> None:
    server.answers[API] = redirects(to)
    server.answers["/round"] = redirects("/round")
    why = find_refusal(f"http://{server.host}/history/app-1")
    assert why.startswith(("the server answers with HTTP status 302", "no whole answer"))


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (status(401), "HTTP status 401; put user:password@"),
        (status(500), "HTTP status 500; expected a Spark History Server"),
        (sends(b"<html>Welcome"), "not that of a Spark History Server"),
        (sends(b'{"attempts": 7}'), "not that of a Spark History Server"),
        (sends(b'["attempts"]'), "not that of a Spark History Server"),
        (sends(b"[" * 200_000), "not that of a Spark History Server"),
        (sends(b" " * 20_000_000), "not that of a Spark History Server"),
    ],
)
def test_what_is_no_history_server_is_refused(
    server: SmallServer, answer: Answer, complaint: str
) -> None:
    server.answers[API] = answer
    assert complaint in find_refusal(f"http://me:hush@{server.host}/history/app-1")


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (sends(b"<html>Log in, please", "text/html"), "the server sent text/html instead"),
        (sends(zipped({"app-1": "{}\n"})[:-30], promised=999), "not a whole zip"),
        (sends(zipped({"../app-1": "{}\n"})), "leads out of it"),
        (sends(zipped({"_SUCCESS": ""})), "the zip holds no event log"),
        (sends(zipped({"app-1": '{"' + "0" * 9_000_000})), "over 500 times as much"),
        (sends(zipped({"app-1": '{"' + os.urandom(150_000).hex()})), "more than 195 KiB"),
        (status(404), "HTTP status 404"),
    ],
)
def test_what_is_no_zip_of_logs_is_refused_and_leaves_nothing(
    server: SmallServer, tmp_path: Path, answer: Answer, complaint: str
) -> None:
    server.answers[API] = sends(APPLICATION)
    server.answers[f"{API}/logs"] = answer
    limits = UnpackLimits(
        ratio_from_bytes=100_000, max_bytes=200_000 if "195" in complaint else 2**30
    )
    result = unpacked(f"http://{server.host}/history/app-1", tmp_path, limits)
    assert (result.logs, result.pending) == ({}, {})
    (failure,) = result.failures
    assert failure.name == f"http://{server.host}/history/app-1"
    assert complaint in failure.why
    assert not [path for path in tmp_path.rglob("*") if path.name != "_fetched"]


def test_an_answer_that_breaks_off_is_refused(server: SmallServer) -> None:
    server.answers[API] = lambda handler: handler.wfile.write(b"HTTP/1.0 200 OK\r\nContent-Le")
    find_refusal(f"http://{server.host}/history/app-1")
    server.answers[API] = lambda handler: handler.wfile.write(b"once upon a time\r\n")
    assert "no whole answer" in find_refusal(f"http://{server.host}/history/app-1")


@pytest.mark.parametrize(
    ("address", "complaint"),
    [
        ("http://me:hush@127.0.0.1:1/history/app-1", "Connection refused"),
        ("http://me:hush@127.0.0.1:x/history/app-1", "not an address"),
        ("http://me:12/hush@127.0.0.1/history/app-1", "no whole answer"),
        ("http://me:hu/hush@127.0.0.1/history/app-1", "not an address"),
        ("http:///history/app-1", "names no host"),
        ("http:/history/app-1", "names no host"),
        ("http://[::1/history/app-1", "not an address"),
        ("http://no such\nhost/history/app-1", ""),
        ("http://127.0.0.1:1/history/\udcff", ""),
        ("http://me\n:hush\udcff@127.0.0.1:1/history/app-1", ""),
    ],
)
def test_what_is_no_address_is_refused(address: str, complaint: str) -> None:
    assert complaint in find_refusal(address)


def drips(piece: bytes, *, headers: bool = True, kind: str = "application/zip") -> Answer:
    """Sends a piece now and then, for ever."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        if headers:
            handler.send_response(200)
            handler.send_header("Content-Type", kind)
            handler.send_header("Content-Length", str(10**9))
            handler.end_headers()
        else:
            handler.wfile.write(b"HTTP/1.0 200 OK\r\n")
        with contextlib.suppress(OSError):
            while True:
                handler.wfile.write(piece)
                handler.wfile.flush()
                time.sleep(0.05)

    return answer


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        (API, drips(b" ", kind="application/json")),
        (API, drips(b"X-More: 1\r\n", headers=False)),
        (f"{API}/logs", drips(b"PK\x03\x04")),
    ],
)
def test_a_server_that_drips_is_not_waited_for(
    server: SmallServer,
    tmp_path: Path,
    path: str,
    answer: Answer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("headway.profiler.logs.patience.FIRST_S", 0.5)
    monkeypatch.setattr("headway.profiler.logs.patience._LEAST_BYTES_PER_S", 1000.0)
    server.answers = {API: sends(APPLICATION, "application/json"), path: answer}
    address = f"http://{server.host}/history/app-1"
    began_s = time.monotonic()
    if path == API:
        why = find_refusal(address)
    else:
        (failure,) = unpacked(address, tmp_path).failures
        why = failure.why
    assert "the server is too slow (it sent " in why
    assert "expected 1000 bytes a second after the first 0 s" in why.replace("0.5 s", "0 s")
    assert "download the log and name the file" in why
    assert time.monotonic() - began_s < 10


def test_a_slow_server_that_keeps_its_rate_is_waited_for(
    server: SmallServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.profiler.logs.patience.FIRST_S", 0.3)
    monkeypatch.setattr("headway.profiler.logs.patience._LEAST_BYTES_PER_S", 100.0)
    body = zipped({"app-1": '{"Event":"SparkListenerLogStart"}\n'})

    def slowly(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        for place in range(0, len(body), 20):
            handler.wfile.write(body[place : place + 20])
            handler.wfile.flush()
            time.sleep(0.08)

    server.answers = {API: sends(APPLICATION, "application/json"), f"{API}/logs": slowly}
    assert len(unpacked(f"http://{server.host}/history/app-1", tmp_path).logs) == 1
