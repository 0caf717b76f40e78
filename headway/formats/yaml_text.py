"""Nouns -> YAML text that people can read and diff."""

from __future__ import annotations

from typing import Any

import yaml

from headway.formats.codec import plain_data
from headway.formats.yaml_document import plain_scalar

_LINE_WIDTH = 100
# Seven times as fast where PyYAML has libyaml, as its wheels do.
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def yaml_text(noun: object) -> str:
    """A dataclass as YAML: keys in the order of its fields, small leaves on one line.

    Numbers are rounded to six significant digits, so that small changes make small differences.
    Values that are missing or empty by default are left out. Raises ValueError if a number is
    infinite or not a number: the file could not be read back.

    >>> from headway.domain import Arrivals
    >>> print(yaml_text(Arrivals(rate_per_s=1000 / 3)), end="")
    rate_per_s: 333.333
    dispersion_ratio: 1.0
    """
    node = _Representer(sort_keys=False).represent_data(plain_data(noun))
    _lay_out(node, indent=-2, before=0)
    if isinstance(node, yaml.CollectionNode):
        node.flow_style = False  # the outermost keeps its keys apart, however few
    text: str = yaml.serialize(node, Dumper=_DUMPER, width=_LINE_WIDTH, allow_unicode=True)
    return text


class _Representer(yaml.representer.SafeRepresenter):
    """Quotes more carefully than PyYAML: what is written must be read back unchanged."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True  # equal values stand next to each other as often as they occur

    def represent_str(self, data: str) -> yaml.ScalarNode:
        node = super().represent_str(data)
        if not data.isprintable():
            # Other styles turn the rarer line ends, such as U+0085, into blanks.
            node.style = '"'
        elif not isinstance(plain_scalar(data), str):
            # Text to older YAML but a number here, e.g. 1e3.
            node.style = "'"
        return node


_Representer.add_representer(str, _Representer.represent_str)


def _lay_out(node: yaml.Node, *, indent: int, before: int) -> None:
    """Put mappings and lists that hold only scalars on one line when they fit.

    ``indent`` and ``before`` count the characters in front of the line and of the node on it.
    """
    if isinstance(node, yaml.MappingNode):
        children = [(value, len(key.value) + 2) for key, value in node.value]
    elif isinstance(node, yaml.SequenceNode):
        children = [(item, 0) for item in node.value]
    else:
        return
    is_leaf = all(isinstance(child, yaml.ScalarNode) for child, _ in children)
    # A comma and a blank after each item, or a bracket; quotes may add a little.
    width = 2 + sum(key + len(child.value) + 2 for child, key in children if is_leaf)
    node.flow_style = is_leaf and indent + before + width <= _LINE_WIDTH
    for child, key in children:
        _lay_out(child, indent=indent + 2, before=key)
