"""Runs a benchmark by its name, and writes its page if it makes one.

    python benchmarks/run.py clusters ../shared/data --output docs/cluster-accuracy.md

A benchmark is a module of a folder here with ``text``, which makes a page of what was given
on the command line, or with ``run``, which writes files of its own. ``options`` adds to the command
line. `pages` says when and on what machine a page was made.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from headway.errors import HeadwayError

HERE = Path(__file__).parent
FOLDERS = ("accuracy", "speed", "sharing", "scheduling", "tuning", "ordered")


def benchmarks() -> dict[str, Path]:
    """Every benchmark, by the name of its module."""
    return {
        path.stem: path
        for folder in FOLDERS
        for path in sorted((HERE / folder).glob("*.py"))
        if "\ndef text(given" in path.read_text() or "\ndef run(given" in path.read_text()
    }


def main(arguments: list[str]) -> None:
    """Run the one that is named first."""
    known = benchmarks()
    if not arguments or arguments[0] not in known:
        sys.exit(f"expected one of {', '.join(known)}; see benchmarks/run.py NAME --help")
    name, *rest = arguments
    # The root first: packages that are installed bring folders called tests, too.
    sys.path[:0] = [str(known[name].parent), str(HERE.parent)]
    module = importlib.import_module(name)
    parser = argparse.ArgumentParser(
        prog=f"benchmarks/run.py {name}", description=(module.__doc__ or "").splitlines()[0]
    )
    if hasattr(module, "options"):
        module.options(parser)
    makes_page = hasattr(module, "text")
    if makes_page:
        parser.add_argument("--output", type=Path, help="Markdown file; printed if not given")
    given = parser.parse_args(rest)
    try:
        if not makes_page:
            module.run(given)
            return
        text = module.text(given)
    except HeadwayError as error:
        sys.exit(f"{name}: {error}")
    if text is None:
        return
    if given.output is None:
        print(text, end="" if text.endswith("\n") else "\n")
    else:
        given.output.write_text(text)
        print(given.output)


if __name__ == "__main__":
    main(sys.argv[1:])
