"""Spec files: the envelope, includes, and the noun inside, with all faults at once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, cast

from headway.errors import InputError
from headway.formats.own_files import path_of, read_text
from headway.formats.yaml_document import Document, Fault, Mark, Plain, Route, parse_document, shown
from headway.spec.forms import FAULTY, Reader, entry, place
from headway.spec.forms.entries import ValueKind, merged
from headway.spec.forms.kinds import Choice, ListOf, MapOf, Nested, Text
from headway.spec.forms.quantities import NAME
from headway.spec.kinds import KINDS, noun_of_kind

if TYPE_CHECKING:
    from headway.domain import AnyAnswer, BatchAnswer, EndingJob, JobProfile, StreamAnswer

API_VERSION = "headway/v1"
#: The schema, as a file beside the spec: editors find it there without a network.
SCHEMA_FILE = "headway.schema.json"
_MOST_INCLUDES = 20
_EXPECTED = "a spec file: apiVersion, kind, metadata, spec ('headway init' writes one)"

Noun = TypeVar("Noun")


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """What a file is called."""

    name: str = entry(NAME, "The name of what the file describes.")
    labels: dict[str, str] = entry(MapOf(value=Text()), "Free labels.", default={})
    description: str | None = entry(Text(), "A sentence for people.", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecFile:
    """A file that was read: its kind, its name, its noun, and the texts with their positions."""

    path: Path
    kind: str
    metadata: Metadata
    spec: Any
    documents: Sequence[Document]

    def place(self, *route: str | int) -> Mark:
        """Position of a value in the file; for a missing one, that of what is around it."""
        return place(self.documents, ("spec", *route))

    @property
    def place_of_kind(self) -> Mark:
        return place(self.documents, ("kind",))


_ENVELOPE: Mapping[str, ValueKind] = {
    "apiVersion": Choice((API_VERSION,)),
    "kind": Choice(KINDS),
    "metadata": Nested(Metadata),
    "include": ListOf(item=Text(words="the path of a YAML file"), or_one=True),
}


def scaffold(kind: str, *, name: str, file: str) -> str:
    """The text of a new file: valid as it is, with values to replace.

    Raises InputError if there is no such kind.

    >>> scaffold("StreamingJob", name="orders", file="orders.yaml").splitlines()[5]
    'apiVersion: headway/v1'
    """
    if kind not in KINDS:
        raise InputError(f"kind is {kind!r}; expected one of {', '.join(KINDS)}")
    path = Path(__file__).parent / "scaffolds" / f"{kind}.yaml"
    fillings = {"{name}": name, "{file}": file}
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"\{(?:name|file)\}", lambda match: fillings[match[0]], text)
    return f"# yaml-language-server: $schema={SCHEMA_FILE}\n{text}"


def load_spec(path: str | Path) -> SpecFile:
    """Read a spec file of any kind.

    Paths in it start at its folder. Raises InputError if it cannot be read or is no valid spec; one
    line per fault, as ``file:line:column: path: what, expected, did you mean``.

    >>> load_spec("no/such.yaml")
    Traceback (most recent call last):
    ...
    headway.errors.InputError: no/such.yaml: no such file; expected a spec file: apiVersion...
    """
    file = path_of(path, expected=_EXPECTED)
    text = read_text(file, expected=_EXPECTED)
    return parse_spec(text, name=str(path), folder=file.parent)


def parse_spec(text: str, *, name: str, folder: Path, needs_files: bool = True) -> SpecFile:
    """Read the text of a spec file; ``folder`` is where its paths start.

    Without ``needs_files`` the files that it names need not exist yet. Raises InputError as
    `load_spec`.
    """
    documents: list[Document] = []
    root = _with_includes(parse_document(text, name=name), folder, documents, (name,))
    reader = Reader(documents, folder, needs_files=needs_files)
    for document in documents:
        reader.faults += document.faults
    envelope = _read_envelope(reader, root)
    reader.raise_faults()
    kind, metadata, spec = envelope
    return SpecFile(
        path=Path(name), kind=kind, metadata=metadata, spec=spec, documents=tuple(documents)
    )


def require_kind(file: SpecFile, *kinds: str) -> None:
    """Refuse a file of any other kind than these.

    Raises InputError, which names the kinds that were expected.
    """
    if file.kind not in kinds:
        expected = " or ".join(kinds)
        raise InputError(f"{file.place_of_kind}: kind: got {file.kind!r}; expected {expected}")


def spec_of(file: SpecFile, noun: type[Noun]) -> Noun:
    """The noun of a file that must be of its kind.

    Raises InputError if the file is of another kind.
    """
    # A kind is called as its noun is.
    require_kind(file, noun.__name__)
    return cast(Noun, file.spec)


def load_spec_of(path: str | Path, noun: type[Noun]) -> Noun:
    return spec_of(load_spec(path), noun)


def _with_includes(
    document: Document, folder: Path, documents: list[Document], trail: tuple[str, ...]
) -> dict[str, Plain]:
    """The data of a file merged over that of the files it includes; all of them are listed."""
    documents.append(document)
    root = document.root
    if not isinstance(root, dict):
        mark = document.value_mark(())
        raise InputError(str(Fault(mark, (), f"got {shown(root)}; expected {_EXPECTED}")))
    for route, included in _included(root.get("include")):
        path = folder / included
        try:
            resolved = str(path.resolve())
            if resolved in trail or str(path) in trail:
                raise InputError("includes itself; expected files that do not include each other")
            if len(documents) >= _MOST_INCLUDES:
                raise InputError(f"more than {_MOST_INCLUDES} files are included")
            text = read_text(path, expected="a YAML file to include")
        except (InputError, OSError, ValueError) as error:
            fault = Fault(document.value_mark(route), route, str(error))
            raise InputError(str(fault)) from None
        included_root = _with_includes(
            parse_document(text, name=str(path)), path.parent, documents, (*trail, resolved)
        )
        root = merged(root, included_root)
        assert isinstance(root, dict)
    return root


def _included(value: Plain) -> list[tuple[Route, str]]:
    """The included files; anything that is not text is refused by the envelope."""
    if isinstance(value, str) and value.strip():
        return [(("include",), value)]
    if not isinstance(value, list):
        return []
    return [
        (("include", index), file_name)
        for index, file_name in enumerate(value)
        if isinstance(file_name, str) and file_name.strip()
    ]


def _read_envelope(reader: Reader, root: dict[str, Plain]) -> Any:
    if "schema" in root and "kind" not in root:
        reader.fault(("schema",), f"a profile, or another file of Headway's; expected {_EXPECTED}")
        return None
    envelope: dict[str, Any] = {}
    keys = [*_ENVELOPE, "spec"]
    for key in root:
        if key not in keys:
            close = get_close_matches(key, keys, n=1, cutoff=0.5)
            some = f"expected one of {', '.join(keys)}"
            advice = f"did you mean {close[0]!r}?" if close else some
            reader.fault((key,), f"unknown key; {advice}", at_key=True)
    for key, kind in _ENVELOPE.items():
        if key in root:
            envelope[key] = kind.read(reader, (key,), root[key])
        elif key != "include":
            envelope[key] = reader.fault((key,), f"missing; expected {kind.words}")
    if envelope["kind"] is FAULTY:
        # A kind that is only misspelt is read on, so that all that is wrong is reported at once.
        close = get_close_matches(str(root.get("kind")), KINDS, n=1)
        if not close:
            return None
        envelope["kind"] = close[0]
    spec_kind = Nested(noun_of_kind(envelope["kind"]))
    if "spec" not in root:
        reader.fault(("spec",), f"missing; expected {spec_kind.words}")
        return None
    spec = spec_kind.read(reader, ("spec",), root["spec"])
    return envelope["kind"], envelope["metadata"], spec


ProfileOf = TypeVar("ProfileOf", bound="JobProfile | EndingJob")
AnswerOf = TypeVar("AnswerOf", bound="AnyAnswer")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedOf(Generic[ProfileOf, AnswerOf]):
    """A job's file, its profile and its plan."""

    file: SpecFile
    profile: ProfileOf
    plan: AnswerOf

    @property
    def name(self) -> str:
        """The job's name."""
        return self.file.metadata.name

    @property
    def promise_key(self) -> str:
        """Position of its target in its file."""
        return "deadline" if self.plan.ends else "target"

    @property
    def promised(self) -> str:
        """Its target, in words."""
        return "run time" if self.plan.target is None else self.plan.target.statistic


PlannedJob: TypeAlias = "PlannedOf[JobProfile, StreamAnswer]"
PlannedBatch: TypeAlias = "PlannedOf[EndingJob, BatchAnswer]"
Planned: TypeAlias = PlannedOf[Any, Any]
