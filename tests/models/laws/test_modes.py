"""The second mode is found where there is one, and only there."""

from __future__ import annotations

import numpy as np
import pytest

from headway.models.laws.modes import ONE_MODE, slow_mode


@pytest.mark.parametrize(
    ("share", "ratio", "sd"), [(0.05, 2.0, 0.1), (0.2, 1.4, 0.08), (0.4, 3.0, 0.2)]
)
def test_share_and_ratio_come_back(share: float, ratio: float, sd: float) -> None:
    rng = np.random.default_rng(7)
    slow = rng.random(3000) < share
    found = slow_mode(sd * rng.standard_normal(3000) + np.where(slow, np.log(ratio), 0.0))
    assert found[0] == pytest.approx(share, abs=0.02)
    assert found[1] == pytest.approx(ratio, rel=0.03)


def test_one_mode_is_left_alone_whatever_its_form() -> None:
    rng = np.random.default_rng(8)
    falsely = 0
    for _ in range(200):
        falsely += slow_mode(0.1 * rng.standard_normal(150)) != ONE_MODE
        falsely += slow_mode(np.log(rng.gamma(8.0, size=150))) != ONE_MODE
    assert falsely <= 4


@pytest.mark.parametrize("values", [[], [0.0] * 100, [0.0] * 99 + [5.0], [0.1, 5.0]])
def test_too_little_is_one_mode(values: list[float]) -> None:
    assert slow_mode(np.array(values)) == ONE_MODE


def test_order_does_not_matter() -> None:
    rng = np.random.default_rng(9)
    values = np.concatenate([rng.normal(0, 0.1, 300), rng.normal(1, 0.1, 30)])
    assert slow_mode(values) == slow_mode(rng.permutation(values))
