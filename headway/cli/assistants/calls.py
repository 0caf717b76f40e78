"""A call of a tool: its command is run in this process, and what it prints is the answer."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.cli.assistants.confinement import require_readable
from headway.cli.assistants.tool import Tool, all_tools
from headway.cli.main import run
from headway.errors import EXIT_CODES, ExitCode, InputError
from headway.redaction import redact

LARGEST_ANSWER_BYTES = 256 * 1024
#: How a command ends that has printed its result.
_WITH_RESULT = (ExitCode.OK, ExitCode.INFEASIBLE, ExitCode.REGRESSION, ExitCode.OUTSIDE)
_COMPLAINT = "headway: "
_NOT_CUT = 2**31
# Other tools read plans: each is stored until the session ends, under a name of its own.
_STORED = "answered-plan"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a call answers: JSON, of a result or of a refusal, and how the command ended."""

    text: str
    exit_code: int
    is_error: bool = False


def refusal(messages: Sequence[str], exit_code: int = ExitCode.INVALID) -> Answer:
    """A refusal, with the messages of the command line."""
    meanings = {int(code): meaning for code, meaning in EXIT_CODES.items()}
    refused = {
        "schema": "headway.refusal/v1",
        "exit_code": int(exit_code),
        "meaning": meanings.get(exit_code, "interrupted"),
        "messages": [_shown(message) for message in messages],
    }
    return Answer(text=_compact(refused), exit_code=int(exit_code), is_error=True)


def answer(tool_name: str, arguments: Mapping[str, Any], folder: Path) -> Answer:
    """Call a tool in this process, whose working folder is the folder of the tools.

    Names and texts of logs and files are values of the JSON that is answered, and nothing else.
    """
    tool = all_tools().get(tool_name)
    if tool is None:
        return refusal([f"no tool {tool_name!r}; expected one of {', '.join(all_tools())}"])
    try:
        words = tool.words(_with_stored_plans(tool, arguments, folder))
    except InputError as error:
        return refusal([str(error)])
    printed, remarks = io.StringIO(), io.StringIO()
    with redirect_stdout(printed), redirect_stderr(remarks):
        exit_code = run(words)
    if exit_code not in _WITH_RESULT or not printed.getvalue():
        lines = remarks.getvalue().splitlines()
        complaints = [line for line in lines if line.startswith(_COMPLAINT)]
        return refusal([line.removeprefix(_COMPLAINT) for line in complaints], exit_code)
    return _answered(tool.name, _visible(json.loads(printed.getvalue())), exit_code)


def _answered(tool_name: str, result: dict[str, Any], exit_code: int) -> Answer:
    """The result as an answer, unless it is too large; a plan is stored."""
    text = _compact(result)
    size_bytes = len(text.encode())
    if size_bytes > LARGEST_ANSWER_BYTES:
        why = (
            f"the answer has {size_bytes / 1024:.0f} KiB, more than the "
            f"{LARGEST_ANSWER_BYTES / 1024:.0f} KiB of a tool; ask for less, or run "
            f"'headway {tool_name} --json' in a terminal"
        )
        return refusal([why])
    if tool_name == "plan":
        text = _compact({**result, "stored_as": _store(text)})
    return Answer(text=text, exit_code=exit_code)


def _with_stored_plans(tool: Tool, arguments: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The arguments with the files of stored plans; all other paths must be readable."""
    stored = {file.name: str(file) for file in _stored_plans()}
    for path in tool.paths(arguments):
        if path not in stored:
            require_readable(folder, path)
    return {
        name: stored.get(value, value) if isinstance(value, str) else value
        for name, value in arguments.items()
    }


def _stored_plans() -> list[Path]:
    return list(Path(tempfile.gettempdir()).glob(f"{_STORED}-*.json"))


def _store(text: str) -> str:
    file = Path(tempfile.gettempdir(), f"{_STORED}-{len(_stored_plans()) + 1}.json")
    file.write_text(text, encoding="utf-8")
    return file.name


def _visible(value: Any) -> Any:
    """Data of an answer, with each text as it is shown."""
    if isinstance(value, str):
        return _shown(value)
    if isinstance(value, dict):
        return {_shown(key): _visible(member) for key, member in value.items()}
    return [_visible(member) for member in value] if isinstance(value, list) else value


def _shown(text: str) -> str:
    """A text, redacted once more, since files may hold what no log does."""
    without_folder = text.replace(f"{tempfile.gettempdir()}/{_STORED}", _STORED)
    return "\n".join(redact(line, longest=_NOT_CUT) for line in without_folder.split("\n"))


def _compact(data: Mapping[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
