"""Node types as they are written, and what cannot be one."""

from __future__ import annotations

import pytest

from headway.domain import CatchUp, NodeType, RateTrace
from headway.errors import InputError


def test_every_field_can_be_written() -> None:
    found = NodeType.parse(" big : cores=16, memory=60g, price=0.7, speed=1.25, executors=4 ")
    assert found == NodeType(
        name="big",
        cores=16,
        memory_bytes=60 * 2**30,
        price_per_hour=0.7,
        core_speed_ratio=1.25,
        executors_per_node=4,
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("big", "'big' is not known; describe it"),
        ("big:", "cores are missing"),
        ("big:memory=8g", "cores are missing"),
        (":cores=4", "no name"),
        ("big:cores=four", "no whole number"),
        ("big:cores=0", "expected at least 1"),
        ("big:cores=-4", "expected at least 1"),
        ("big:cores=4,cores=5", "given twice"),
        ("big:cores=4,price=0", "more than 0 per hour"),
        ("big:cores=4,price=-1", "more than 0 per hour"),
        ("big:cores=4,price=inf", "more than 0 per hour"),
        ("big:cores=4,price=nan", "more than 0 per hour"),
        ("big:cores=4,price=cheap", "'cheap' is no number"),
        ("big:cores=4,memory=lots", "is not a size"),
        ("big:cores=4,memory=0g", "expected a positive size"),
        ("big:cores=4,memory=14", "memory: '14' has no unit; write 14g for gibibytes"),
        ("big:cores=4,memory=14.5", "write 14.5g for gibibytes, or 14.5m for mebibytes"),
        ("big:cores=4,speed=0", "more than 0"),
        ("big:cores=4,executors=5", "a core for each"),
        ("big:cores=4,colour=red", "is not one of cores, memory, price, speed, executors"),
        ("big:cores", "no whole number"),
    ],
)
def test_what_is_no_node_type_is_one_line(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as raised:
        NodeType.parse(text)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("catch_up <= 15m", "e.g. 'catch_up <= 15m after 30m'"),
        ("catch_up <= soon after 30m", "is not a duration"),
        ("catch_up <= 0s after 30m", "above zero"),
        ("catch_up after 30m", "is not a target"),
    ],
)
def test_what_is_no_promise_to_catch_up_is_one_line(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        CatchUp.parse(text)


@pytest.mark.parametrize(
    ("times_s", "rates_per_s", "end_s"),
    [
        ((), (), 1.0),
        ((0.0,), (1.0, 2.0), 1.0),
        ((0.0, 0.0), (1.0, 2.0), 1.0),
        ((0.0,), (1.0,), 0.0),
        ((0.0,), (-1.0,), 1.0),
        ((0.0,), (0.0,), 1.0),
        ((0.0,), (float("nan"),), 1.0),
    ],
)
def test_a_rate_trace_is_checked_when_made(
    times_s: tuple[float, ...], rates_per_s: tuple[float, ...], end_s: float
) -> None:
    with pytest.raises(ValueError, match=r"rate|trace"):
        RateTrace(times_s=times_s, rates_per_s=rates_per_s, end_s=end_s)
