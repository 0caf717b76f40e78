"""Event logs from a Spark History Server: available logs, and their download."""

from __future__ import annotations

import base64
import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from email.message import Message
from http import HTTPStatus
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote, unquote, urlsplit

from headway.profiler.logs import patience
from headway.profiler.logs.event_logs import (
    EventLog,
    HistoryServerZip,
    UnfetchedLogError,
    UnreadableLogError,
    reason_of,
)
from headway.profiler.logs.limits import Allowance
from headway.profiler.logs.patience import Watch
from headway.profiler.logs.zipped import is_zip
from headway.redaction import one_line
from headway.units import parse_size_bytes

_API = ["api", "v1", "applications"]
_ANSWER_WITHIN_S, _LOG_WITHIN_S = 120.0, 12 * 3600.0
_CHUNK_BYTES = parse_size_bytes("1m")
_LONGEST_ANSWER_BYTES = parse_size_bytes("16m")
_NUM_EXAMPLES = 5

Credentials = tuple[str, str]


def history_server_logs(address: str) -> list[EventLog]:
    """The logs of an application on a History Server, one for each attempt, oldest first.

    The address is that in the browser, ``http://host:18080/history/<application>[/<attempt>]``, or
    that of the REST interface, ``.../api/v1/applications/<application>[/<attempt>]/...``; with
    ``user:password@`` before the host if the server asks for them.
    """
    server, credentials, path = _parse(address)
    if not path:
        raise UnreadableLogError(
            f"the address names no application; {_examples(server, credentials)}"
        )
    application = path[0]
    try:
        answer = _ask(_api_url(server, application), credentials)
    except _StatusError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        raise UnreadableLogError(
            f"the server has no application {one_line(application)}; "
            f"{_examples(server, credentials)}"
        ) from None
    named = path[1] if len(path) > 1 and path[1].isdecimal() else None
    attempts = [
        (attempt, completed)
        for attempt, completed in _attempts(answer)
        if named is None or attempt == named
    ]
    if not attempts:
        raise UnreadableLogError(
            f"the application has no attempt {named}; leave it out to read all attempts"
        )
    name = f"{server}/history/{application}"
    return [
        EventLog(
            name=one_line(name if attempt is None else f"{name}/{attempt}"),
            files=(HistoryServerZip(_api_url(server, application, attempt, "logs"), credentials),),
            in_progress=not completed,
        )
        for attempt, completed in reversed(attempts)
    ]


def download(
    file: HistoryServerZip, target: Path, allowance: Allowance, on_progress: Callable[[int], None]
) -> None:
    """Download the zip of one attempt, and report the bytes of each received piece."""
    with (
        _opened(file.url, file.credentials, _LOG_WITHIN_S) as (response, chunks),
        target.open("wb") as zip_file,
    ):
        for chunk in chunks:
            if zip_file.tell() == 0 and not is_zip(chunk):
                kind = one_line(response.headers.get_content_type())
                raise UnreadableLogError(
                    f"the server sent {kind} instead of a zip of event logs; expected a Spark "
                    "History Server that lets you read the application"
                )
            allowance.take(len(chunk))
            zip_file.write(chunk)
            on_progress(len(chunk))


def _parse(address: str) -> tuple[str, Credentials | None, Sequence[str]]:
    """Address of a server without user and password, these, and the application with what follows.

    These are the parts of the path.
    """
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        # The faulty text may be a part of the password.
        raise UnreadableLogError(
            "not an address: its host or port is wrong; write a / in the password as %2F"
        ) from None
    if not host:
        raise UnreadableLogError("not an address: it names no host")
    netloc = (f"[{host}]" if ":" in host else host) + (f":{port}" if port else "")
    before, after = _split_path([unquote(part) for part in parts.path.split("/") if part])
    prefix = "".join(f"/{quote(part, safe='')}" for part in before)
    credentials = None
    if parts.username is not None:
        credentials = unquote(parts.username), unquote(parts.password or "")
    return f"{parts.scheme.lower()}://{netloc}{prefix}", credentials, after


def _split_path(path: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """The path before the server's own part, and the application with what follows.

    >>> _split_path(["spark", "history", "app-1", "2", "jobs"])
    (['spark'], ['app-1', '2', 'jobs'])
    >>> _split_path(["api", "v1", "applications"])
    ([], [])
    """
    for server_path in (_API, ["history"]):
        for at in reversed(range(len(path))):
            if list(path[at : at + len(server_path)]) == server_path:
                return path[:at], path[at + len(server_path) :]
    return path, []


def _api_url(server: str, *names: str | None) -> str:
    quoted = [quote(name, safe="") for name in names if name is not None]
    return "/".join([server, *_API, *quoted])


def _attempts(application: Any) -> list[tuple[str | None, bool]]:
    """For each attempt, newest first: its id, if any, and whether it has ended."""
    try:
        return [
            (
                None if attempt.get("attemptId") is None else str(attempt["attemptId"]),
                bool(attempt.get("completed", True)),
            )
            for attempt in application["attempts"]
        ]
    except (AttributeError, KeyError, TypeError):
        raise _not_a_history_server() from None


def _examples(server: str, credentials: Credentials | None) -> str:
    """Some of the applications that the server has."""
    answer = _ask(f"{_api_url(server)}?limit={_NUM_EXAMPLES}", credentials)
    try:
        names = [one_line(str(application["id"])) for application in answer][:_NUM_EXAMPLES]
    except (KeyError, TypeError):
        raise _not_a_history_server() from None
    if not names:
        return "the server has no applications"
    return f"expected {server}/history/<application>; it has, among others, {', '.join(names)}"


def _ask(url: str, credentials: Credentials | None) -> Any:
    text = b""
    with _opened(url, credentials, _ANSWER_WITHIN_S) as (_, chunks):
        while len(text) <= _LONGEST_ANSWER_BYTES and (chunk := next(chunks, b"")):
            text += chunk
    try:
        if len(text) <= _LONGEST_ANSWER_BYTES:
            return json.loads(text)
    except (ValueError, RecursionError):
        pass
    raise _not_a_history_server()


def _not_a_history_server() -> UnreadableLogError:
    return UnreadableLogError(
        "the answer is not that of a Spark History Server; expected an address such as "
        "http://host:18080/history/<application>"
    )


class _StatusError(UnfetchedLogError):
    """The server answered, with an error."""

    def __init__(self, status: int) -> None:
        self.status = status
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            advice = "put user:password@ of somebody who may read it before the host"
        else:
            advice = "expected a Spark History Server there"
        super().__init__(f"the server answers with HTTP status {status}; {advice}")


def _chunks(response: http.client.HTTPResponse, watch: Watch) -> Iterator[bytes]:
    """Bytes as they are received."""
    while True:
        try:
            # Not a full chunk of a given size, which may never be complete.
            chunk = response.read1(_CHUNK_BYTES)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise _no_answer(error, watch) from None
        # An answer without a stated length ends with the connection.
        if watch.complaint:
            raise _no_answer(TimeoutError(), watch)
        watch.came(len(chunk))
        if not chunk:
            return
        yield chunk


@contextmanager
def _opened(
    url: str, credentials: Credentials | None, within_s: float
) -> Iterator[tuple[http.client.HTTPResponse, Iterator[bytes]]]:
    """The answer to a request, and its bytes."""
    request = urllib.request.Request(url)
    if credentials is not None:
        encoded = base64.b64encode(":".join(credentials).encode()).decode("ascii")
        # Not forwarded when another server is redirected to.
        request.add_unredirected_header("Authorization", f"Basic {encoded}")
    with Watch(within_s) as watch:
        try:
            response = _opener(watch).open(request, timeout=patience.FIRST_S)
        except urllib.error.HTTPError as error:
            error.close()
            raise _StatusError(error.code) from None
        except urllib.error.URLError as error:
            cause = error.reason if isinstance(error.reason, Exception) else Exception(error.reason)
            raise _no_answer(cause, watch) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise _no_answer(error, watch) from None
        with response:
            yield response, _chunks(response, watch)


def _no_answer(error: Exception, watch: Watch) -> UnreadableLogError:
    if watch.complaint:
        return UnreadableLogError(
            f"the server is too slow ({watch.complaint}); download the log and name the file, or "
            "try again when the server has less to do"
        )
    reason = one_line(reason_of(error)) or type(error).__name__
    return UnfetchedLogError(
        f"no whole answer from the server ({reason}); is a Spark History Server running there?"
    )


def _opener(watch: Watch) -> urllib.request.OpenerDirector:
    """Opens http and https only, also after redirects."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        watch.handler(),
        urllib.request.UnknownHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        _Redirects(),
    ):
        opener.add_handler(handler)
    return opener


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Passes user and password on to the same server only."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: Message,
        newurl: str,
    ) -> urllib.request.Request | None:
        request = super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]
        authorization = req.get_header("Authorization")
        if request is not None and authorization and _same_server(req.full_url, newurl):
            request.add_unredirected_header("Authorization", authorization)
        return request


def _same_server(old_url: str, new_url: str) -> bool:
    old, new = urlsplit(old_url), urlsplit(new_url)
    same_door = (old.scheme, old.port) == (new.scheme, new.port)
    return old.hostname == new.hostname and (same_door or new.scheme == "https")
