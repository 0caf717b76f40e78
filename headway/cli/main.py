"""The ``headway`` command: its sub-commands, loaded on demand, and its error handling."""

from __future__ import annotations

import gc
import importlib
import os
import re
import sys
from collections.abc import Iterable, Sequence

import click

from headway.cli.overview import ABOUT, COMMANDS, OPTIONS, overview
from headway.cli.terminal import fit_width, help_width, refuse_colour
from headway.errors import ExitCode, HeadwayError, InfeasibleError, SpecError
from headway.redaction import printable
from headway.version import __version__

_INTERRUPTED = 130


class LazyGroup(click.Group):
    """A group whose commands are imported when they are run, for a fast start."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Names in the order of use."""
        return list(COMMANDS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of the first word; for a misspelt one, a suggestion."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            if _is_file(args[0]):
                return None, importlib.import_module("headway.cli.about").command, args
            close = _closest(args[0], COMMANDS)
            hint = f"; did you mean 'headway {close}'?" if close else ""
            raise click.UsageError(f"no command {args[0]!r}{hint}", ctx)
        return super().resolve_command(ctx, args)

    def get_help(self, ctx: click.Context) -> str:
        """The overview, without importing what it lists."""
        return overview(ctx.make_formatter().width)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command, imported now."""
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"headway.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command


@click.group(
    cls=LazyGroup,
    help=ABOUT,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="headway")
@click.option(
    "--no-color",
    is_flag=True,
    expose_value=False,
    callback=refuse_colour,
    help=OPTIONS["--no-color"],
)
def cli() -> None:
    """All commands."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit; every expected failure is one line on stderr."""
    # No matrix of ours is worth a second thread; starting the threads takes longer.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    exit_code = run(sys.argv[1:] if arguments is None else arguments)
    # The process ends: looking for garbage in all that it leaves takes 30 ms more.
    gc.freeze()
    sys.exit(exit_code)


def run(arguments: Sequence[str]) -> int:
    """Run the command line; the exit code."""
    stdout = sys.stdout
    fit_width()
    try:
        result = cli.main(
            args=list(arguments),
            prog_name="headway",
            standalone_mode=False,
            terminal_width=help_width(),
        )
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return ExitCode.INVALID
    except click.ClickException as error:
        where = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else ""
        hint = f" (try '{where} --help')" if where else ""
        return _fail(error.format_message() + _meant(error) + hint, error.exit_code)
    except (SpecError, InfeasibleError) as error:
        for fault in str(error).splitlines():
            _fail(fault, error.exit_code)
        return error.exit_code
    except HeadwayError as error:
        return _fail(str(error), error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        return _fail("interrupted", _INTERRUPTED)
    except BrokenPipeError:
        return _say_no_more()
    except SystemExit:
        # Of a pipe that breaks inside a command click makes this, after it muffled the streams.
        if sys.stdout is stdout:
            raise
        return _say_no_more()
    except OSError as error:
        _drop_what_cannot_be_written()
        return _fail(f"{error.filename or 'i/o'}: {error.strerror or error}", ExitCode.FAILURE)
    except Exception as error:
        if os.environ.get("HEADWAY_DEBUG"):
            raise
        kind = type(error).__name__
        return _fail(
            f"internal error: {kind}: {_said(error)} (set HEADWAY_DEBUG=1 for the traceback)",
            ExitCode.FAILURE,
        )
    return result if isinstance(result, int) else 0


def _is_file(word: str) -> bool:
    """Whether a word is no command but the name of a file, of a folder, or of event logs."""
    # The overview is shown without either.
    from pathlib import Path

    from headway.api.file_kinds import is_log

    return is_log(word) or Path(word).is_file()


def _meant(error: click.ClickException) -> str:
    """The probably intended choice of an option, if it was misspelt."""
    choice = error.param.type if isinstance(error, click.BadParameter) and error.param else None
    match = re.match(r"'(.*)' is not one of", getattr(error, "message", ""))
    if not isinstance(choice, click.Choice) or match is None:
        return ""
    close = _closest(match[1], [str(value) for value in choice.choices])
    return f" Did you mean {close!r}?" if close else ""


def _closest(word: str, choices: Iterable[str]) -> str | None:
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, choices, n=1)), None)


def _say_no_more() -> int:
    """The reader has closed the pipe; print nothing more, not even at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _drop_what_cannot_be_written() -> None:
    """Python would try again at exit, and end with its own exit code and message."""
    try:
        sys.stdout.flush()
    except OSError:
        _say_no_more()


def _said(error: Exception) -> str:
    """The text of an error; those of PySpark have none once Spark has stopped."""
    try:
        return str(error)
    except Exception:
        return "no message"


def _fail(message: str, exit_code: int) -> int:
    click.echo(f"headway: {' '.join(printable(message).split())}", err=True)
    return exit_code
