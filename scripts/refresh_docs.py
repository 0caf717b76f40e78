"""Writes the pages that are made of what the program says of itself, or checks that they are fresh.

``docs/cli.md`` is every command's full help; ``docs/spec.md`` between its markers is the schema of
spec files; ``docs/assumptions.md`` is the constants of judgement, ``docs/theory.md`` the
equations in docstrings (``equations.py``). Console blocks of the other
pages are run, as those of the README are.

    python scripts/refresh_docs.py            # rewrite
    python scripts/refresh_docs.py --check    # exit 1 and show the difference
"""

from __future__ import annotations

import contextlib
import difflib
import gc
import io
import os
import sys
from pathlib import Path
from typing import Any
from unittest import mock

from equations import theory_page
from reach import models_page
from refresh_readme import WIDTH, refreshed

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
#: Their commands take a quarter of a minute: they are checked by `make test-statistical`.
_SLOW = frozenset(("how-many-executors.md", "many-streams.md", "scalla.md"))
_BEGIN, _END = "<!-- made by scripts/refresh_docs.py -->", "<!-- end of what is made -->"


def pages(left_out: frozenset[str]) -> dict[Path, str]:
    """Every page with the text that it should have, but for some."""
    docs = ROOT / "docs"
    found = {docs / "cli.md": cli_page(), docs / "spec.md": spec_page(docs / "spec.md")}
    found[docs / "assumptions.md"] = assumptions_page()
    found[docs / "theory.md"] = theory_page()
    found[docs / "models.md"] = refreshed(models_page())
    for path in sorted(docs.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        if path not in found and path.name not in left_out and "```console" in text:
            found[path] = refreshed(text)
    return found


def cli_page() -> str:
    """The reference of the command line."""
    from headway.cli.overview import COMMANDS

    lines = [
        "# Command line",
        "",
        "All commands with all options. `--help` of a command fits one screen; where it leaves",
        "out rare options and further examples, `--help-all` prints what is here. Results go to",
        "stdout, progress and messages to stderr.",
        "",
        f"```text\n{_help()}\n```",
    ]
    for name in COMMANDS:
        lines += ["", f"## headway {name}", "", f"```text\n{_help(name)}\n```"]
    lines += [
        "",
        "## Completion with the Tab key",
        "",
        "Put one line into the file that your shell reads at its start:",
        "",
        "<!-- run by tests/cli/test_help.py -->",
        "",
        "```sh",
        'eval "$(_HEADWAY_COMPLETE=bash_source headway)"      # bash, ~/.bashrc',
        'eval "$(_HEADWAY_COMPLETE=zsh_source headway)"       # zsh, ~/.zshrc',
        "_HEADWAY_COMPLETE=fish_source headway | source       # fish, config.fish",
        "```",
    ]
    return "\n".join([*lines, ""])


def assumptions_page() -> str:
    """Every constant of judgement, by subject."""
    from headway import assumptions

    about, _, _ = (assumptions.__doc__ or "").strip().partition("\n``docs")
    lines = [
        "# Assumptions",
        "",
        "Generated from `headway/assumptions/` by `scripts/refresh_docs.py`.",
        "",
        about.replace("\n\n", " "),
        "",
        "`headway explain` names those that a plan depends on. Numbers in brackets refer to",
        "[theory.md](theory.md). The part of a node that a platform reserves is in the catalogue",
        "of node types, with its source.",
    ]
    for subject in assumptions.subjects():
        title = (subject.__doc__ or "").strip()
        head = "| assumption | value | source | influences |"
        lines += ["", f"## {title.split(':')[0]}", "", title, "", head, "|---|---|---|---|"]
        for identifier, one in assumptions.named(subject):
            what = f"{one.name} `{identifier}`"
            lines.append(f"| {what} | {one.text} | {one.source} | {one.influences} |")
    return "\n".join([*lines, ""])


def _help(*command: str) -> str:
    from headway.cli.main import run

    printed = io.StringIO()
    with mock.patch.dict(os.environ, COLUMNS=WIDTH), contextlib.redirect_stdout(printed):
        assert run([*command, "--help-all" if command else "--help"]) == 0
    return "\n".join(line.rstrip() for line in printed.getvalue().rstrip().splitlines())


def spec_page(path: Path) -> str:
    """The reference of spec files: what people wrote, with what the declarations say in it."""
    from headway.spec.json_schema import file_nouns, json_schema
    from headway.spec.kinds import KINDS, noun_of_kind

    text = path.read_text(encoding="utf-8")
    before, _, rest = text.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    schema = json_schema()
    written: list[str] = []
    lines = []
    for kind in KINDS:
        noun = noun_of_kind(kind)
        lines += [f"## {kind}", "", *_table(noun, written)]
    unwritten_nouns = [noun for noun in file_nouns() if noun.__name__ not in written]
    assert {noun.__name__ for noun in file_nouns()} <= set(schema["$defs"])
    for noun in unwritten_nouns:
        lines += [f"### {noun.__name__}", "", *_table(noun, written)]
    made = "\n".join(["", "", *lines])
    return f"{before}{_BEGIN}{made}{_END}{after}"


def _table(noun: Any, written: list[str]) -> list[str]:
    from headway.spec.forms.entries import entries_of

    written.append(noun.__name__)
    lines = [(noun.__doc__ or "").strip().splitlines()[0], "", "| key | value | |", "|---|---|---|"]
    for each in entries_of(noun):
        about = each.about.replace("|", "\\|").replace("\n", " ")
        needed = "**required** " if each.required else ""
        lines.append(f"| `{each.key}` | {_kind_text(each.kind)} | {needed}{about} |")
    return [*lines, ""]


def _kind_text(kind: Any) -> str:
    from headway.spec.forms.kinds import Choice, FilePath, ListOf, MapOf, NameOr, Nested
    from headway.spec.forms.quantities import Uncertain
    from headway.spec.kinds.rates import RateForm

    match kind:
        case Nested(noun=noun):
            return f"[{noun.__name__}](#{noun.__name__.lower()})"
        case NameOr(name=FilePath(words=words), noun=noun):
            return f"{words}, or [{noun.__name__}](#{noun.__name__.lower()})"
        case NameOr(noun=noun):
            return f"a name, or [{noun.__name__}](#{noun.__name__.lower()})"
        case ListOf(item=item, or_one=or_one):
            return f"{'one or a list' if or_one else 'a list'} of: {_kind_text(item)}"
        case MapOf(value=value):
            return f"a mapping to {_kind_text(value)}"
        case Uncertain(kind=inner):
            return f"{_kind_text(inner)}; or `{{low, mid, high}}`"
        case Choice(choices=choices):
            return ", ".join(f"`{choice}`" for choice in choices)
        case RateForm():
            return (
                "a rate, e.g. `50k/s`; `{low, mid, high}`; [DailyCurve](#dailycurve); "
                "[RateTrace](#ratetrace)"
            )
    return str(kind.words).replace("|", "\\|").replace("<", "\\<")


def main() -> int:
    """Rewrite or check; the exit code."""
    # Trees of syntax and plans are looked through again and again for little garbage.
    gc.set_threshold(100_000)
    stale = 0
    is_every_page = "--check" not in sys.argv or "HEADWAY_ALL_EXAMPLES" in os.environ
    for path, new in pages(frozenset() if is_every_page else _SLOW).items():
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        if old == new:
            continue
        stale = 1
        if "--check" not in sys.argv:
            path.write_text(new, encoding="utf-8")
            sys.stdout.write(f"{path.relative_to(ROOT)}: written\n")
            continue
        name = str(path.relative_to(ROOT))
        lines = difflib.unified_diff(
            old.splitlines(keepends=True), new.splitlines(keepends=True), name, "as it is now"
        )
        sys.stdout.writelines(lines)
    return stale if "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
