"""``headway``, also as ``python -m headway``."""

import contextlib
import gc
import sys

from headway.cli.overview import overview
from headway.cli.terminal import fit_width, help_width

_ALLOCATIONS_PER_COLLECTION = 100_000


def main() -> None:
    """Run the command line and exit; the overview alone comes without what runs commands."""
    # What imports make stays; looking through it for garbage again and again takes 10 ms.
    gc.set_threshold(_ALLOCATIONS_PER_COLLECTION)
    if sys.argv[1:] in (["-h"], ["--help"]):
        fit_width()
        # What cannot be written is reported as by every command.
        with contextlib.suppress(OSError):
            sys.stdout.write(f"{overview(help_width())}\n")
            sys.stdout.flush()
            return
    from headway.cli.main import main as run_and_exit

    run_and_exit()


if __name__ == "__main__":
    main()
