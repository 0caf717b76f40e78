"""A process that reads pieces of logs for another one: orders come in, results go out."""

from __future__ import annotations

import gc
import pickle
import sys

from headway.profiler.pieces import carried_out


def main() -> None:
    """Carry out orders until no more come."""
    # Nothing here refers to itself.
    gc.disable()
    orders, results = sys.stdin.buffer, sys.stdout.buffer

    def told(read_bytes: int, num_events: int) -> None:
        pickle.dump((read_bytes, num_events), results)
        results.flush()

    while True:
        try:
            order = pickle.load(orders)
        except EOFError:
            return
        pickle.dump(carried_out(order, told), results, protocol=pickle.HIGHEST_PROTOCOL)
        results.flush()


if __name__ == "__main__":
    main()
