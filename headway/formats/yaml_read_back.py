"""Content of a YAML file as readers see it: noted before a patch, and compared afterwards.

A patch inserts text at positions. To check that readers then find the intended values, and that
nothing else has changed for them, the text is read once more.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import yaml

from headway.errors import InputError
from headway.formats.yaml_lines import Tree

#: What a node says: a tag and a text, a list, or a mapping in which merged keys are spelt out.
Content: TypeAlias = "tuple[str, str] | list[Content] | dict[str, Content]"

_TEMPLATE = re.compile(r"\{\{|\{%|<%|\$[\w({]")
MERGE_TAG = "tag:yaml.org,2002:merge"
_TAG = "tag:yaml.org,2002:"
_MOST_NODES = 1_000_000


def require_no_key_twice(root: Any, name: str) -> None:
    """Refuse keys that occur twice: readers use the last one, the first one, or neither."""
    for node in _nodes(root):
        if not isinstance(node, yaml.MappingNode):
            continue
        first_keys: dict[tuple[str, str], Any] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            first = first_keys.setdefault((key.tag, key.value), key)
            if first is not key:
                raise InputError(
                    f"{_place(name, key)}: {key.value} occurs twice in one mapping, first in line "
                    f"{first.start_mark.line + 1}; keep one of the two, then patch"
                )


def require_no_template(text: str, node: Any, key: str, name: str) -> None:
    """Refuse a value that a template fills in: the file does not determine it."""
    is_block = isinstance(node, yaml.CollectionNode) and not node.flow_style
    written = text[node.start_mark.index : node.end_mark.index]
    template_match = None if is_block else _TEMPLATE.search(written)
    keys = [] if not isinstance(node, yaml.MappingNode) else [key for key, _ in node.value]
    if template_match is None and all(isinstance(key_node, yaml.ScalarNode) for key_node in keys):
        return
    shown = written.strip().split("\n")[0].strip()[:60]
    raise InputError(
        f"{_place(name, node)}: {key} is filled in by a template, {shown}; put the plan's value "
        "where the template takes it from, or patch the rendered file"
    )


def template_hint(text: str) -> str:
    """For a text that is not YAML: a hint that it may be a template, if it looks like one."""
    template_match = re.search(r"\{\{|\{%|<%", text)
    if template_match is None:
        return ""
    line = text.count("\n", 0, template_match.start()) + 1
    return (
        f"; {template_match[0]} in line {line} looks like a template: render it, then patch the "
        "result"
    )


def require_readable(root: Any, name: str) -> None:
    """Refuse aliases that make a file larger than memory, or that contain themselves."""
    sizes: dict[int, int] = {}
    begun: set[int] = set()
    waiting = [(root, False)]
    while waiting:
        node, is_done = waiting.pop()
        parts = _parts(node) if isinstance(node, yaml.CollectionNode) else []
        if is_done:
            sizes[id(node)] = 1 + sum(sizes.get(id(part), _MOST_NODES) for part in parts)
            if sizes[id(node)] > _MOST_NODES:
                raise InputError(f"{_place(name, node)}: its aliases make it too large to patch")
        elif id(node) in begun and id(node) not in sizes:
            raise InputError(f"{_place(name, node)}: an alias is inside its own anchor")
        elif id(node) not in sizes:
            begun.add(id(node))
            waiting.append((node, True))
            waiting += [(part, False) for part in parts if id(part) not in sizes]


def content_of(node: Any) -> Content:
    """The content of a node for readers, including merged keys."""
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node.tag, node.value)
    if isinstance(node, yaml.SequenceNode):
        return [content_of(child) for child in node.value]
    own_entries: dict[str, Content] = {}
    merged: dict[str, Content] = {}
    for key, value in node.value:
        if key.tag == MERGE_TAG:
            for source in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                source_content = content_of(source)
                if isinstance(source_content, dict):
                    merged = source_content | merged
        else:
            own_entries[repr(content_of(key))] = content_of(value)
    return {**merged, **own_entries}


def with_changes(content: Content | None, changes: Tree) -> Content:
    """Required content of a patched node: the changes, and everything else unchanged."""
    match changes:
        case bool():
            return _scalar(f"{_TAG}bool", str(changes))
        case int():
            return _scalar(f"{_TAG}int", str(changes))
        case str():
            return _scalar(f"{_TAG}str", changes)
        case Mapping() if isinstance(content, list):
            items = list(content)
            for index, value in changes.items():
                items[int(index)] = with_changes(items[int(index)], value)
            return items
        case Mapping():
            entries = dict(content) if isinstance(content, dict) else {}
            for key, value in changes.items():
                key_repr = repr(_scalar(f"{_TAG}str", key))
                entries[key_repr] = with_changes(entries.get(key_repr), value)
            return entries
    return [with_changes(None, element) for element in changes]


def replaced(root: Any, node: Any, new_content: Content) -> Content:
    """The content of a document with the content of one of its nodes replaced."""
    if root is node:
        return new_content
    if not isinstance(root, yaml.CollectionNode):
        return content_of(root)
    if isinstance(root, yaml.SequenceNode):
        return [replaced(child, node, new_content) for child in root.value]
    entries = content_of(root)
    assert isinstance(entries, dict)
    own_pairs = [
        (repr(content_of(key)), value) for key, value in root.value if key.tag != MERGE_TAG
    ]
    return {**entries, **{key: replaced(value, node, new_content) for key, value in own_pairs}}


def times_reached(root: Any, node: Any) -> int:
    """From how many places of a document a node is reached: more than one are aliases."""
    num_at_root = 1 if root is node else 0
    parts = _parts(root) if isinstance(root, yaml.CollectionNode) else []
    return num_at_root + sum(times_reached(part, node) for part in parts)


def first_difference(expected: Content, actual: Content) -> str | None:
    """The first difference of two readings, as a path; None if they are equal.

    >>> expected = {repr(("t", "a")): [("t", "1"), ("t", "2")]}
    >>> first_difference(expected, {repr(("t", "a")): [("t", "1"), ("t", "3")]})
    'a[1]'
    """
    return next((text.removeprefix(".") for text in _differences(expected, actual, "")), None)


def _differences(expected: Content, actual: Content, path: str) -> Iterator[str]:
    if expected == actual:
        return
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in {**expected, **actual}:
            where = f"{path}.{_key_text(key)}"
            if key in expected and key in actual:
                yield from _differences(expected[key], actual[key], where)
            else:
                yield where
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for at, (expected_element, actual_element) in enumerate(zip(expected, actual, strict=True)):
            yield from _differences(expected_element, actual_element, f"{path}[{at}]")
    else:
        yield path or "its root"


def _key_text(key: str) -> str:
    tag_and_text = ast.literal_eval(key)
    return str(tag_and_text[1]) if isinstance(tag_and_text, tuple) else key


def _scalar(tag: str, text: str) -> Content:
    return tag, text.lower() if tag == f"{_TAG}bool" else text


def _nodes(root: Any) -> Iterator[Any]:
    """A node and all nodes below it, each once, whatever the number of aliases."""
    waiting, visited_ids = [root], set()
    while waiting:
        node = waiting.pop()
        if id(node) in visited_ids:
            continue
        visited_ids.add(id(node))
        yield node
        if isinstance(node, yaml.CollectionNode):
            waiting += _parts(node)


def _parts(node: Any) -> list[Any]:
    if isinstance(node, yaml.SequenceNode):
        return list(node.value)
    return [part for pair in node.value for part in pair]


def _place(name: str, node: Any) -> str:
    return f"{name}:{node.start_mark.line + 1}:{node.start_mark.column + 1}"
