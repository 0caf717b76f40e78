"""Ways for Headway's metrics out of the process: Spark's metrics system, a page for scrapers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from headway.domain.argument_values import require_running
from headway.errors import HeadwayError, first_line
from headway.formats.open_metrics import CONTENT_TYPE
from headway.runtime.given import require_no_connect
from headway.runtime.jars import new_object

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATH = "/metrics"


def page_server(text: Callable[[], str], *, port: int, host: str) -> ThreadingHTTPServer:
    """Answers ``GET /metrics`` with a text that is made anew for each request, from now on.

    It listens at the address ``host``, on a free port if ``port`` is 0. Raises HeadwayError if it
    cannot.
    """

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
        server = ThreadingHTTPServer((host, port), Handler)
    except (OSError, OverflowError) as error:
        raise HeadwayError(
            f"port {port} of {host} cannot be listened at ({first_line(error)}); expected a "
            "free port, e.g. 9464, or 0 for any"
        ) from None
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="headway-metrics-page", daemon=True).start()
    return server


def close_page(server: ThreadingHTTPServer) -> None:
    """Answer no more; may be repeated."""
    server.shutdown()
    server.server_close()


def registered_source(spark: SparkSession) -> Any:
    """A source of the driver's metrics named ``headway``, with just the values put in last."""
    require_no_connect(
        spark,
        "gives no access to Spark's metrics",
        "publish in the driver, or leave out spark and give port or file",
    )
    require_running(spark)
    gateway = spark.sparkContext._gateway
    source = new_object(gateway, "headway.runtime.metrics", "headway.metrics.LiveSource")
    source.register()
    return source
