"""State that Python keeps per customer, in Spark's own stateful processors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle


class Balance(StatefulProcessor):
    """Points of a customer: the sum of all quantities."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """One value per customer."""
        self._points = handle.getValueState("points", "points long")

    def handleInputRows(  # noqa: N802 (Spark's own name)
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: Any,  # noqa: ARG002 (Spark passes it by this name)
    ) -> Iterator[Any]:
        """Add what the batch has of a customer."""
        from pyspark.sql import Row

        old = self._points.get() or (0,)
        points = int(old[0]) + sum(row.quantity for row in rows)
        self._points.update((points,))
        yield Row(customer=key[0], points=points)

    def close(self) -> None:
        """Nothing to close."""


class Basket(StatefulProcessor):
    """The last products of a customer, and how many pieces were bought."""

    MOST_PRODUCTS = 10

    def init(self, handle: StatefulProcessorHandle) -> None:
        """One value per customer."""
        self._basket = handle.getValueState("basket", "products array<long>, pieces long")

    def handleInputRows(  # noqa: N802 (Spark's own name)
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: Any,  # noqa: ARG002 (Spark passes it by this name)
    ) -> Iterator[Any]:
        """Put what the batch has of a customer into the basket."""
        import pandas as pd  # type: ignore[import-untyped]

        products, pieces = self._basket.get() or ([], 0)
        bought, total = list(products), int(pieces)
        for frame in rows:
            bought += frame["product"].tolist()
            total += int(frame["quantity"].sum())
        bought = bought[-self.MOST_PRODUCTS :]
        self._basket.update((bought, total))
        yield pd.DataFrame(
            {"customer": [key[0]], "num_products": [len(set(bought))], "pieces": [total]}
        )

    def close(self) -> None:
        """Nothing to close."""
