"""A small HTTP server for scrapers, with the standard library: one page of text."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from headway.errors import HeadwayError, first_line
from headway.formats.open_metrics import CONTENT_TYPE

PATH = "/metrics"


class Endpoint:
    """Answers ``GET /metrics`` with a text that is made anew for each request.

    It listens at the address ``host``, on a free port if ``port`` is 0. Raises HeadwayError if it
    cannot.
    """

    def __init__(self, text: Callable[[], str], *, port: int, host: str) -> None:
        class Handler(BaseHTTPRequestHandler):
            timeout = 10.0
            server_version, sys_version = "headway", ""

            def do_GET(self) -> None:  # the name in http.server
                if self.path.partition("?")[0] != PATH:
                    self.send_error(404, f"expected {PATH}")
                    return
                try:
                    body = text().encode()
                except Exception as error:  # the scraper gets an answer, and the query goes on
                    self.send_error(500, "no metrics", first_line(error))
                    return
                self.send_response(200)
                self.send_header("Content-Type", CONTENT_TYPE)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Scrapes are no news."""

        try:
            self._server = ThreadingHTTPServer((host, port), Handler)
        except (OSError, OverflowError) as error:
            raise HeadwayError(
                f"port {port} of {host} cannot be listened at ({first_line(error)}); expected a "
                "free port, e.g. 9464, or 0 for any"
            ) from None
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="headway-metrics-page", daemon=True
        )
        self._thread.start()

    @property
    def port(self) -> int:
        """The port that it listens at."""
        return int(self._server.server_address[1])

    def close(self) -> None:
        """Answer no more; may be repeated."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=10.0)
