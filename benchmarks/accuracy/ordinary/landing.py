"""Files of orders that land in a folder at a constant rate, written by a process of their own.

A file is written beside the folder and renamed into it, at the instant that its rows carry: rows
are available from then on.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

FILE_PERIOD_S = 0.5
SCHEMA = "order_id long, customer long, product long, store long, quantity int, landed_us long"
_NUM_CUSTOMERS, _NUM_PRODUCTS, _NUM_STORES = 20_000, 2_000, 40
_LINES = 4096


@cache
def order_lines() -> list[str]:
    """The beginnings of lines, of which files are made in turn: all but the number and instant."""
    draw = random.Random(1)
    return [
        f'{{"customer":{draw.randrange(_NUM_CUSTOMERS)},"product":{draw.randrange(_NUM_PRODUCTS)},'
        f'"store":{draw.randrange(_NUM_STORES)},"quantity":{1 + draw.randrange(5)},"order_id":'
        for _ in range(_LINES)
    ]


def write_file(folder: Path, number: int, first_row: int, num_rows: int, landed_us: int) -> None:
    """One file of so many rows, complete when it appears in the folder."""
    lines = order_lines()
    end = f',"landed_us":{landed_us}}}\n'
    text = "".join(
        f"{lines[row % _LINES]}{row}{end}" for row in range(first_row, first_row + num_rows)
    )
    unfinished = folder.parent / f".{folder.name}-{number}"
    unfinished.write_text(text, encoding="utf-8")
    left_s = landed_us / 1e6 - time.time()
    if left_s > 0:
        time.sleep(left_s)
    unfinished.rename(folder / f"orders-{number:07}.json")


def fill(folder: Path, num_files: int, rows_per_file: int) -> None:
    """A backlog of files that have landed already."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(num_files):
        now_us = round(time.time() * 1e6) - (num_files - number)
        write_file(folder, number, number * rows_per_file, rows_per_file, now_us)


@contextmanager
def landing_files(folder: Path, rate_per_s: float) -> Iterator[None]:
    """Files land in the folder while the context lasts, every half second."""
    folder.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen([sys.executable, __file__, str(folder), str(rate_per_s)])
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def _land(folder: Path, rate_per_s: float) -> None:
    start_s, number = time.time() + FILE_PERIOD_S, 0
    while True:
        first, end = (round(rate_per_s * FILE_PERIOD_S * at) for at in (number, number + 1))
        landed_us = round((start_s + FILE_PERIOD_S * number) * 1e6)
        write_file(folder, number, first, end - first, landed_us)
        number += 1


if __name__ == "__main__":
    _land(Path(sys.argv[1]), float(sys.argv[2]))
