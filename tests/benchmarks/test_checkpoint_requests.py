"""Requests at an S3-compatible server: how they are counted; writes are as predicted."""

from __future__ import annotations

from typing import Any

import checkpoint_requests
import pytest
from checkpoint_requests import FITTED, JUDGED, error_of, predicted, requests_of
from counting_s3 import Request, counted
from result_lines import lines_of

ROWS = {row["run"]: row for row in lines_of(checkpoint_requests.RESULTS)[1:]}


def environ(method: str, path: str, query: str = "", **headers: str) -> dict[str, Any]:
    return {"REQUEST_METHOD": method, "PATH_INFO": path, "QUERY_STRING": query, **headers}


@pytest.mark.parametrize(
    ("request_environ", "name", "key"),
    [
        (environ("PUT", "/queries/q/a"), "PUT", "q/a"),
        (environ("PUT", "/queries/q/a", HTTP_X_AMZ_COPY_SOURCE="/queries/q/b"), "COPY", "q/a"),
        (environ("HEAD", "/queries/q/a%20b"), "HEAD", "q/a b"),
        (environ("GET", "/queries/q/a"), "GET", "q/a"),
        (environ("GET", "/queries", "list-type=2&prefix=q%2F"), "LIST of 1000", "q/"),
        (environ("GET", "/queries/", "max-keys=2&prefix=q/a/"), "LIST of 2", "q/a/"),
        (environ("POST", "/queries", "delete"), "DELETE", ""),
        (environ("POST", "/queries/q/a", "uploads"), "POST", "q/a"),
    ],
)
def test_a_request_is_named_as_the_store_charges_it(
    request_environ: dict[str, Any], name: str, key: str
) -> None:
    request = Request.of(request_environ)
    assert (request.name, request.key) == (name, key)
    assert Request.of_line(request.line) == request


def test_requests_are_counted_by_parts() -> None:
    requests = [Request("PUT", 0, "q/a"), Request("PUT", 0, "q/b"), Request("LIST", 2, "r/")]
    counts = counted(requests, lambda key: key.partition("/")[0])
    assert counts == {"q": {"PUT": 2}, "r": {"LIST of 2": 1}}


def test_runs_that_are_fitted_are_not_judged() -> None:
    names = [each.name for each in (*FITTED, *JUDGED)]
    assert len(set(names)) == len(names)
    assert len(JUDGED) >= 3
    assert any(each.shape.sink != "noop" for each in JUDGED)
    assert set(ROWS) <= set(names)
    assert len({each.shape for each in (*FITTED, *JUDGED) if each.name in ROWS}) >= 3


COUNTED = [each for each in (*FITTED, *JUDGED) if each.name in ROWS]


@pytest.mark.parametrize("each", COUNTED, ids=[each.name for each in COUNTED])
def test_writes_are_within_five_percent_of_the_count(each: Any) -> None:
    row = ROWS[each.name]
    for prediction, count in list(
        zip(predicted(each, row["interval_s"]), requests_of(row), strict=True)
    )[:2]:
        error = error_of(prediction, count)
        assert error is None or abs(error) <= 0.05
