"""Change values in a YAML file and nothing else: all other bytes stay the same.

The file is composed once to get the positions of its nodes; texts are then inserted at those
positions, so that comments, order, quotes and indentation are never touched. The result is read
back: if it does not contain the requested values and all others unchanged, there is no patch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import yaml

import headway.formats.yaml_read_back as read_back
from headway.errors import InputError
from headway.formats.yaml_lines import Tree, yaml_key, yaml_scalar

#: Where characters start and end, and the text to put in their place.
Edit: TypeAlias = tuple[int, int, str]


def documents_of(text: str, name: str) -> list[Any]:
    """The nodes of each document in a file.

    Raises InputError if the text is not YAML, or a key occurs twice in a mapping.
    """
    try:
        # The loader in Python, whose marks count characters.
        nodes = [
            node for node in yaml.compose_all(text, Loader=yaml.SafeLoader) if node is not None
        ]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = "1:1" if mark is None else f"{mark.line + 1}:{mark.column + 1}"
        why = f"{error.problem or error.context}{read_back.template_hint(text)}"
        raise InputError(f"{name}:{where}: not YAML: {why}") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise InputError(f"{name}:1:1: not YAML that can be patched: {error}"[:300]) from None
    for node in nodes:
        read_back.require_readable(node, name)
        read_back.require_no_key_twice(node, name)
    return nodes


def value_at(node: Any, route: Iterable[str]) -> Any:
    """The node at a route, also one of a merged key; None if there is none."""
    for step in route:
        node = _entries(node).get(step, (None, None))[1]
    return node


def items_of(node: Any) -> list[Any]:
    """The items of a list; none for anything else."""
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def text_at(node: Any, route: Iterable[str]) -> str | None:
    """The text of the scalar at a route; None if there is none."""
    value_node = value_at(node, route)
    return str(value_node.value) if isinstance(value_node, yaml.ScalarNode) else None


def pairs_of(node: Any) -> list[tuple[str, Any]]:
    """The keys of a mapping, and the node of each; none for anything else."""
    if not isinstance(node, yaml.MappingNode):
        return []
    return [(str(key.value), value) for key, value in node.value]


def scalars_of(node: Any) -> dict[str, str]:
    """The scalars of a mapping by their keys, including merged ones; none for anything else."""
    return {
        key: str(value.value)
        for key, (_, value) in _entries(node).items()
        if isinstance(value, yaml.ScalarNode)
    }


def line_of(node: Any, key: str) -> int:
    """The line of a key of a mapping, counted from 1; that of the mapping if it is not in it."""
    entry = _entries(node).get(key)
    return int((node if entry is None else entry[0]).start_mark.line) + 1


def _entries(node: Any) -> dict[str, tuple[Any, Any]]:
    """Keys and values of a mapping; its own ones override those that it merges."""
    if not isinstance(node, yaml.MappingNode):
        return {}
    entries: dict[str, tuple[Any, Any]] = {}
    for key, value in node.value:
        if key.tag == read_back.MERGE_TAG:
            sources = value.value if isinstance(value, yaml.SequenceNode) else [value]
            for source in reversed(sources):
                entries |= _entries(source)
    return entries | {str(key.value): (key, value) for key, value in node.value}


def patched(
    text: str, documents: Sequence[Any], node: Any, changes: Mapping[str, Tree], name: str
) -> str:
    """The text with ``changes`` made below ``node``, a mapping in one of its documents.

    Items of a list are changed by a mapping whose keys are their places in it. Raises InputError if
    a value is shared by an anchor, so that a change would affect other places, or is filled in by a
    template; or if the result, read back, would not contain the requested values.

    >>> text = "spec: # sizes\\n  cores: 2   # was 1\\n  image: 'a'\\n"
    >>> documents = documents_of(text, "a.yaml")
    >>> changes = {"spec": {"cores": 4, "memory": "8g"}}
    >>> print(patched(text, documents, documents[0], changes, "a.yaml"), end="")
    spec: # sizes
      cores: 4   # was 1
      image: 'a'
      memory: "8g"
    """
    if sum(read_back.times_reached(document, node) for document in documents) > 1:
        line = node.start_mark.line + 1
        raise InputError(f"{name}: the mapping of line {line} is shared by an anchor; write it out")
    edits = [
        (start, end, number, put)
        for number, (start, end, put) in enumerate(_edits(text, node, changes, name))
    ]
    newline = "\r\n" if 2 * text.count("\r\n") > text.count("\n") else "\n"
    patched_text = text
    # From the end on, so that places stay; at one place what belongs deeper comes first.
    for start, end, _, put in sorted(edits, reverse=True):
        patched_text = patched_text[:start] + put.replace("\n", newline) + patched_text[end:]
    _require_said(patched_text, documents, node, changes, name)
    return patched_text


def _require_said(
    patched_text: str, documents: Sequence[Any], node: Any, changes: Mapping[str, Tree], name: str
) -> None:
    """Read the patched text back: the changes are in it, and everything else is unchanged."""
    required_content = read_back.with_changes(read_back.content_of(node), changes)
    expected = [read_back.replaced(document, node, required_content) for document in documents]
    try:
        actual = [read_back.content_of(document) for document in documents_of(patched_text, name)]
        difference = read_back.first_difference(expected, actual)
    except InputError as error:
        difference = str(error)
    if difference is not None:
        raise InputError(
            f"{name}: the patch would not read back as planned, at {difference}; nothing is changed"
            ": write the values in by hand, or in plain block style, one key per line"
        )


def _edits(text: str, node: Any, changes: Mapping[str, Tree], name: str) -> Iterable[Edit]:
    if not isinstance(node, yaml.MappingNode):
        line = node.start_mark.line + 1
        raise InputError(f"{name}:{line}:1: expected a mapping with {', '.join(changes)}")
    missing: dict[str, Tree] = {}
    for key, value in changes.items():
        old_node = next(
            (value_node for key_node, value_node in node.value if key_node.value == key), None
        )
        if old_node is None:
            missing[key] = value
            continue
        if _is_alias(text, node, old_node):
            line = old_node.start_mark.line + 1
            raise InputError(
                f"{name}: {key} is shared by an anchor in line {line}; "
                "write the value out, then patch"
            )
        read_back.require_no_template(text, old_node, key, name)
        if isinstance(value, Mapping) and isinstance(old_node, yaml.MappingNode):
            yield from _edits(text, old_node, value, name)
        elif isinstance(value, Mapping) and isinstance(old_node, yaml.SequenceNode):
            yield from _edits_of_items(text, old_node, value, name)
        elif isinstance(value, str | int):
            if not _says(old_node, value):
                yield _instead(text, old_node, yaml_scalar(value))
        elif isinstance(value, Mapping) and old_node.value == "" and not node.flow_style:
            yield _filled(text, node, old_node, value)
        elif isinstance(value, Mapping) and old_node.tag.endswith(":null"):
            yield _instead(text, old_node, _flow(value))
        else:
            line = old_node.start_mark.line + 1
            raise InputError(f"{name}:{line}:1: {key} is not what it should be; expected a mapping")
    if missing:
        yield _insertion(text, node, missing)


def _edits_of_items(text: str, node: Any, changes: Mapping[str, Tree], name: str) -> Iterable[Edit]:
    for index, value in changes.items():
        if not (index.isdecimal() and int(index) < len(node.value)):
            line = node.start_mark.line + 1
            raise InputError(f"{name}:{line}:1: a list; expected a mapping, with the key {index}")
        item = node.value[int(index)]
        assert isinstance(value, Mapping)
        if _is_alias(text, node, item):
            line = item.start_mark.line + 1
            raise InputError(
                f"{name}: an item of the list in line {node.start_mark.line + 1} is shared by an "
                f"anchor in line {line}; write the item out, then patch"
            )
        yield from _edits(text, item, value, name)


def _filled(text: str, node: Any, empty_node: Any, value: Mapping[str, Tree]) -> Edit:
    """A block below a key without a value, behind a comment that the key may have."""
    block = _block(value, " " * (_indent_of(node) + 2)).rstrip("\n")
    at = text.find("\n", empty_node.end_mark.index)
    at = len(text) if at < 0 else at - (text[at - 1] == "\r")
    return at, at, f"\n{block}"


def _says(node: Any, value: str | int | bool) -> bool:
    """Whether a scalar already has the value, so that its spelling can stay."""
    if not isinstance(node, yaml.ScalarNode):
        return False
    if isinstance(value, bool):
        return node.tag.endswith(":bool") and node.value.lower() == str(value).lower()
    if isinstance(value, int):
        return node.tag.endswith(":int") and node.value == str(value)
    return node.tag.endswith(":str") and node.value == value


def _span(text: str, node: Any) -> tuple[int, int]:
    start, end = node.start_mark.index, node.end_mark.index
    # The end of a block scalar is where the next thing starts.
    while end > start and text[end - 1] in " \n\r":
        end -= 1
    return start, end


def _instead(text: str, node: Any, value_text: str) -> Edit:
    """A value instead of another, or of a missing one right behind its colon."""
    start, end = _span(text, node)
    return start, end, f" {value_text}" if start and text[start - 1] == ":" else value_text


def _is_alias(text: str, parent: Any, child: Any) -> bool:
    """Whether other places share a node: it is outside its parent, or has an anchor."""
    return _is_outside(parent, child) or text.startswith("&", child.start_mark.index)


def _is_outside(parent: Any, child: Any) -> bool:
    return not parent.start_mark.index <= child.start_mark.index <= parent.end_mark.index


def _indent_of(node: Any) -> int:
    return int(node.value[0][0].start_mark.column) if node.value else 0


def _insertion(text: str, node: Any, missing: Mapping[str, Tree]) -> Edit:
    if node.flow_style:
        pairs = ", ".join(f"{yaml_key(key)}: {_flow(value)}" for key, value in missing.items())
        # Behind the last value, so before any comment; where an alias hides it, in front of all.
        values = [value_node for _, value_node in node.value]
        last = max(values, key=lambda value_node: value_node.end_mark.index, default=None)
        if last is None or any(_is_outside(node, value_node) for value_node in values):
            start = text.index("{", node.start_mark.index) + 1
            separator = ", " if node.value else "" if text[start] == "}" else " "
            return start, start, f"{pairs}{separator}"
        _, end = _span(text, last)
        return end, end, f", {pairs}"
    indent = " " * _indent_of(node)
    at = _end_of(text, node)
    block = _block(missing, indent)
    if at == len(text) and text and not text.endswith("\n"):
        return at, at, "\n" + block.rstrip("\n")
    return at, at, block


def _end_of(text: str, node: Any) -> int:
    """The start of the line after the last value of a block mapping."""
    last = node
    while isinstance(last, yaml.CollectionNode) and last.value and not last.flow_style:
        item = last.value[-1]
        last = item[1] if isinstance(item, tuple) else item
        if last.start_mark.index < node.start_mark.index:
            # An alias: its own place is that of the key before it.
            last = item[0] if isinstance(item, tuple) else node.value[-1][0]
            break
    end = last.end_mark.index
    if end and text[end - 1] == "\n":
        return int(end)
    newline = text.find("\n", end)
    return len(text) if newline < 0 else newline + 1


def _block(tree: Mapping[str, Tree], indent: str) -> str:
    return "".join(
        f"{indent}{yaml_key(key)}:\n{_block(value, indent + '  ')}"
        if isinstance(value, Mapping) and value
        else f"{indent}{yaml_key(key)}: {_flow(value)}\n"
        for key, value in tree.items()
    )


def _flow(value: Tree) -> str:
    match value:
        case Mapping():
            pairs = ", ".join(
                f"{yaml_key(key)}: {_flow(nested_value)}" for key, nested_value in value.items()
            )
            return f"{{{pairs}}}"
        case str() | int():
            return yaml_scalar(value)
    return f"[{', '.join(map(_flow, value))}]"
