"""One Kafka broker on this machine, and the process that fills its topics."""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from kafka_broker.jars import KafkaUnavailableError, broker_class_path

_HOST = "127.0.0.1"
_UP_WITHIN_S = 60.0
_LOOK_EVERY_S = 0.1
_ENDS_WITHIN_S = 5.0

# A controller and a broker in one; every topic has one copy, so every factor is one.
_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller_port}
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller_port}
advertised.listeners=PLAINTEXT://{host}:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
num.network.threads=2
num.io.threads=4
log.cleaner.enable=false
"""


class Sent(NamedTuple):
    """What a flow sent, and the maximum delay of a row."""

    num_rows: int
    latest_s: float


@dataclass(frozen=True, slots=True)
class Lane:
    """A running broker, and its load process."""

    servers: str
    broker: subprocess.Popen[str]
    load: subprocess.Popen[str]

    def make_topic(self, name: str, partitions: int, *, stamped_by_broker: bool = False) -> None:
        """A new topic whose rows carry the producer's stamp, or that of the broker."""
        self._order(
            "topic", name, partitions, "LogAppendTime" if stamped_by_broker else "CreateTime"
        )

    def start_flow(
        self, topic: str, partitions: int, rate_per_s: float, first_share: float | None = None
    ) -> None:
        """Rows at a constant rate; ``first_share`` of them to partition 0, evenly by default."""
        share = 1.0 / partitions if first_share is None else first_share
        self._order("start", topic, partitions, rate_per_s, share)

    def stop_flow(self, topic: str) -> Sent:
        """End a flow."""
        num_rows, latest_ms = self._order("stop", topic)
        return Sent(int(num_rows), int(latest_ms) / 1e3)

    def cpu_s(self) -> dict[str, float]:
        """Processor time that broker and load have used since they started."""
        return {"broker": _cpu_s(self.broker.pid), "load": _cpu_s(self.load.pid)}

    def _order(self, *words: object) -> list[str]:
        assert self.load.stdin is not None
        assert self.load.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.load.stdin.write(" ".join(map(str, words)) + "\n")
            self.load.stdin.flush()
        answer = self.load.stdout.readline().split()
        if not answer or answer[0] != "ok":
            raise KafkaUnavailableError(
                f"the load process answers {' '.join(answer) or 'nothing'} to {words[0]} {words[1]}"
            )
        return answer[1:]


@contextlib.contextmanager
def running_lane(scratch: Path) -> Iterator[Lane]:
    """A broker and its load process; both end with the block, however it ends.

    Parameters
    ----------
    scratch : Path
        Folder for data and logs, made if missing.

    Raises
    ------
    KafkaUnavailableError
        If jars, Java or a port is missing, or the broker does not start.
    """
    java = shutil.which("java")
    if java is None:
        raise KafkaUnavailableError("no java on PATH; install a JDK 17 or later")
    class_path = broker_class_path()
    # Java takes its settings as an address, and its data where it runs itself.
    scratch = scratch.resolve()
    scratch.mkdir(parents=True, exist_ok=True)
    # What an earlier broker left there is formatted already, which Kafka refuses.
    shutil.rmtree(scratch / "data", ignore_errors=True)
    port, controller_port = _free_ports(2)
    properties = scratch / "server.properties"
    properties.write_text(
        _PROPERTIES.format(
            host=_HOST, port=port, controller_port=controller_port, data=scratch / "data"
        )
    )
    logging = scratch / "log4j2.properties"
    logging.write_text("status = off\nrootLogger.level = error\n")
    command = [
        java, "-Xmx512m", "-XX:+UseSerialGC", f"-Dlog4j2.configurationFile={logging.as_uri()}",
        "-cp", class_path,
    ]  # fmt: skip
    _format(command, properties)
    servers = f"{_HOST}:{port}"
    with contextlib.ExitStack() as running:
        log = running.enter_context((scratch / "processes.log").open("w"))
        broker = running.enter_context(
            _process([*command, "BrokerProcess", str(properties)], subprocess.DEVNULL, log.fileno())
        )
        _wait_until_up(broker, port, scratch / "processes.log")
        load = running.enter_context(
            _process([*command, "LoadProcess", servers], subprocess.PIPE, log.fileno())
        )
        yield Lane(servers, broker, load)


@contextlib.contextmanager
def _process(command: list[str], output: int, log: int) -> Iterator[subprocess.Popen[str]]:
    """A process that ends with its input, and so with this process, even if that is killed."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=log,
        text=True,
        start_new_session=True,  # Ctrl-C is for whoever started it
    )
    try:
        yield process
    finally:
        with contextlib.suppress(OSError):
            assert process.stdin is not None
            process.stdin.close()
        try:
            process.wait(_ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _format(command: list[str], properties: Path) -> None:
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    # An id that starts with a dash would be taken for an option.
    cluster = "k" + cluster[1:]
    result = subprocess.run(
        [*command, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(properties)],
        capture_output=True,
        text=True,
        timeout=_UP_WITHIN_S,
    )
    if result.returncode != 0:
        complaint = (result.stderr + result.stdout).strip().splitlines() or ["no output"]
        raise KafkaUnavailableError(f"Kafka could not format its storage: {complaint[0]}")


def _wait_until_up(broker: subprocess.Popen[str], port: int, log: Path) -> None:
    deadline_s = time.monotonic() + _UP_WITHIN_S
    while time.monotonic() < deadline_s and broker.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection((_HOST, port), timeout=1.0):
            return
        time.sleep(_LOOK_EVERY_S)
    complaint = log.read_text(errors="replace").strip().splitlines() or ["no output"]
    raise KafkaUnavailableError(f"the Kafka broker did not start: {complaint[0]}")


def _free_ports(number: int) -> list[int]:
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(number)]
        for one in sockets:
            one.bind((_HOST, 0))
        return [int(one.getsockname()[1]) for one in sockets]


def _cpu_s(pid: int) -> float:
    """User and system time; 0 if the system does not report it."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
