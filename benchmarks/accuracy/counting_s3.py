"""An S3-compatible server on loopback that writes down each request: moto's, with a counter.

    python benchmarks/accuracy/counting_s3.py REQUESTS

prints its port and serves until it is ended. Each request becomes a line of the file: its kind, the
entries that it lists at most (LIST only, else 0), and the key or prefix that it is about. A LIST of
two entries at most only asks whether a folder is there. Needs ``moto[server]``.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote

HOST, BUCKET = "127.0.0.1", "queries"
COPY, LIST, PUT = "COPY", "LIST", "PUT"
WRITES = (PUT, COPY, "POST")
"""Requests that S3 charges as writes, with LIST; DELETE is free of charge."""
LOOKS_FOR_FOLDER = f"{LIST} of 2"
"""A LIST of so few entries only asks whether a name is a folder."""
_MOST_ENTRIES = 1000

Environ = Mapping[str, Any]


class Request(NamedTuple):
    """A request: its kind, entries that it lists at most, and the key that it is about."""

    kind: str
    most_entries: int
    key: str

    @classmethod
    def of(cls, environ: Environ) -> Request:
        """The request of a WSGI server, which names its bucket in the path.

        Examples
        --------
        >>> Request.of({"REQUEST_METHOD": "GET", "PATH_INFO": "/queries/",
        ...             "QUERY_STRING": "list-type=2&max-keys=2&prefix=0%2Fsink%2F"})
        Request(kind='LIST', most_entries=2, key='0/sink/')
        >>> Request.of({"REQUEST_METHOD": "PUT", "PATH_INFO": "/queries/0/a",
        ...             "HTTP_X_AMZ_COPY_SOURCE": "queries/0/.a.tmp"}).kind
        'COPY'
        """
        query = parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
        method, key = environ["REQUEST_METHOD"], environ["PATH_INFO"].lstrip("/")
        key = unquote(key.partition("/")[2])
        if method == "GET" and not key:
            most_entries = int(query.get("max-keys", [str(_MOST_ENTRIES)])[0])
            return cls(LIST, most_entries, query.get("prefix", [""])[0])
        if method == "PUT" and "HTTP_X_AMZ_COPY_SOURCE" in environ:
            return cls(COPY, 0, key)
        is_deletion = method == "POST" and "delete" in query
        return cls("DELETE" if is_deletion else method, 0, key)

    @property
    def line(self) -> str:
        """As it is written down."""
        return f"{self.kind}\t{self.most_entries}\t{self.key}\n"

    @classmethod
    def of_line(cls, line: str) -> Request:
        """One that was written down."""
        kind, most_entries, key = line.rstrip("\n").split("\t")
        return cls(kind, int(most_entries), key)

    @property
    def name(self) -> str:
        """Its kind in tables: a LIST that looks for a folder is not one that reads it."""
        return f"{LIST} of {self.most_entries}" if self.kind == LIST else self.kind


def counted(requests: Iterable[Request], part_of: Callable[[str], str]) -> dict[str, Any]:
    """Requests by the part that their key belongs to, and by their names."""
    counts: dict[str, Counter[str]] = {}
    for request in requests:
        counts.setdefault(part_of(request.key), Counter())[request.name] += 1
    return {part: dict(sorted(numbers.items())) for part, numbers in sorted(counts.items())}


@contextmanager
def running_server(python: str, requests: Path) -> Iterator[int]:
    """The server in a process of its own, by a Python that has moto; gives its port."""
    process = subprocess.Popen(
        [python, str(Path(__file__).resolve()), str(requests)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        if not port.isdecimal():
            raise RuntimeError(f"the server did not start: {python} needs moto[server]")
        yield int(port)
    finally:
        process.terminate()
        process.wait()


def _serve(file: Path) -> None:
    """Serve with a bucket until the process is ended."""
    make_server = importlib.import_module("werkzeug.serving").make_server
    moto = importlib.import_module("moto.moto_server.werkzeug_app")
    application = moto.DomainDispatcherApplication(moto.create_backend_app)
    lock = threading.Lock()
    with file.open("a", encoding="utf-8") as lines:

        def count(environ: Environ, start_response: Any) -> Any:
            request = Request.of(environ)
            with lock:
                lines.write(request.line)
                lines.flush()
            return application(environ, start_response)

        server = make_server(HOST, 0, count, threaded=True)
        handler = server.RequestHandlerClass
        handler.protocol_version, handler.log_request = "HTTP/1.1", lambda *_: None
        # Werkzeug sends a 100 of its own, and clients take no second one.
        handler.handle_expect_100 = lambda _: True
        print(server.server_port, flush=True)
        server.serve_forever()


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
