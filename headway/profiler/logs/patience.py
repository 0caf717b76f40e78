"""Time limits for a server, so that one that sends single bytes is not waited for forever."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import time
import urllib.request
from typing import Any

from headway.units import counted, parse_size_bytes

FIRST_S = 60.0
"""Time before a rate is required, including connecting."""

_LEAST_BYTES_PER_S = float(parse_size_bytes("16k"))


class Watch:
    """Ends the connections of one request when it is too slow, or takes longer than ``longest_s``.

    A socket timeout restarts with each byte, so it cannot do this.
    """

    def __init__(self, longest_s: float) -> None:
        self._longest_s = longest_s
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
            f"{_LEAST_BYTES_PER_S:.0f} bytes a second after the first "
            f"{FIRST_S:.0f} s, and all within {self._longest_s:.0f} s"
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
        def watched(*address: Any, **options: Any) -> Any:
            connection = kind(*address, **options)
            connect = connection.connect

            def connect_watched() -> None:
                connect()
                self._sockets.append(connection.sock)

            connection.connect = connect_watched
            return connection

        return watched

    def _watch(self) -> None:
        while not self._over.wait(self._left_s()):
            if self._left_s() <= 0:
                self._expired = True
                for connected in self._sockets:
                    with contextlib.suppress(OSError):
                        connected.shutdown(socket.SHUT_RDWR)
                return

    def _left_s(self) -> float:
        earned_s = FIRST_S + self._num_bytes / _LEAST_BYTES_PER_S
        return max(min(earned_s, self._longest_s) - (time.monotonic() - self._began_s), 0.0)
