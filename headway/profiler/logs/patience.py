"""Time limits for a server, so that one that sends single bytes is not waited for forever."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import time
import urllib.request
from dataclasses import dataclass
from typing import Any

from headway.units import counted, parse_size_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Limits for a server: time before a rate is required, including connecting; the minimum mean
    rate after that; time for the whole answer at any rate.
    """

    first_s: float = 60.0
    least_bytes_per_s: float = float(parse_size_bytes("16k"))
    longest_s: float = 12 * 3600.0


class Watch:
    """Ends the connections of one request when the limits are exceeded.

    A socket timeout restarts with each byte, so it cannot do this.
    """

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._sockets: list[socket.socket] = []
        self._num_bytes = 0
        self._began_s = time.monotonic()
        self._over = threading.Event()
        self._expired = False
        self._watching = threading.Thread(target=self._watch, name="headway-patience", daemon=True)

    def __enter__(self) -> Watch:
        self._watching.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._watching.join()

    def came(self, num_bytes: int) -> None:
        self._num_bytes += num_bytes

    @property
    def complaint(self) -> str:
        """How slow the server was, if the connection was ended here; else empty."""
        if not self._expired:
            return ""
        return (
            f"it sent {counted(self._num_bytes, 'byte')} in "
            f"{time.monotonic() - self._began_s:.0f} s; expected "
            f"{self._patience.least_bytes_per_s:.0f} bytes a second after the first "
            f"{self._patience.first_s:.0f} s, and all within {self._patience.longest_s:.0f} s"
        )

    def handler(self) -> urllib.request.BaseHandler:
        """A handler that opens http and https under this watch."""
        watch = self

        class Opened(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
            def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
                return self.do_open(watch._connection(http.client.HTTPConnection), req)

            def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
                return self.do_open(watch._connection(http.client.HTTPSConnection), req)

        return Opened()

    def _connection(self, kind: Any) -> Any:
        watch = self

        class Watched(kind):  # type: ignore[misc]
            def connect(self) -> None:
                super().connect()
                watch._sockets.append(self.sock)

        return Watched

    def _watch(self) -> None:
        while not self._over.wait(self._left_s()):
            if self._left_s() <= 0:
                self._expired = True
                for connected in self._sockets:
                    with contextlib.suppress(OSError):
                        connected.shutdown(socket.SHUT_RDWR)
                return

    def _left_s(self) -> float:
        patience = self._patience
        earned_s = patience.first_s + self._num_bytes / patience.least_bytes_per_s
        return max(min(earned_s, patience.longest_s) - (time.monotonic() - self._began_s), 0.0)
