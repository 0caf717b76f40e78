"""Operators that can be partitioned in the same way and run as one, which avoids shuffles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

from headway.domain.checks import require_not_negative

MOST_EDGES_ENUMERATED = 12


Edge: TypeAlias = tuple[int, int, float]
"""An operator, another one to which it sends rows, and these [rows/s, or rows of a batch]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorGraph:
    """Numbered operators, the attributes each may be partitioned by, and the edges between them.

    An operator without attributes cannot be parallelised and is never fused.
    """

    attributes: tuple[frozenset[str], ...]
    edges: tuple[Edge, ...]

    def __post_init__(self) -> None:
        operators = range(len(self.attributes))
        for source, target, rows in self.edges:
            require_not_negative(f"edge {source}-{target}", rows=rows)
            if source not in operators or target not in operators or source == target:
                raise ValueError(
                    f"edge {source}-{target}: expected two different operators of "
                    f"{len(self.attributes)}"
                )


Component: TypeAlias = tuple[frozenset[int], frozenset[str]]
"""Operators that run as one, and the attributes that all of them may be partitioned by."""

Score: TypeAlias = Callable[[Edge, frozenset[str]], float]
"""Value of fusing across an edge, from the edge and the attributes that both sides share."""


def rows_score(edge: Edge, common: frozenset[str]) -> float:  # noqa: ARG001
    """Rows of the edge, which need not be shuffled if it is fused (COMM of Enorm 2016, 4.4.1)."""
    _, _, rows = edge
    return rows


def attributes_score(edge: Edge, common: frozenset[str]) -> float:  # noqa: ARG001
    """Number of common attributes, so that more can be fused later (PA of Enorm 2016, 4.4.1).

    >>> attributes_score((0, 1, 10.0), frozenset("ab"))
    2.0
    """
    return float(len(common))


def fused(graph: OperatorGraph, score: Score) -> tuple[Component, ...]:
    """Components by greedy fusion: the edge with the best score first, until none can be fused.

    They are in the order of their first operators; among equal scores, the edge listed first is
    taken. ``score`` is :func:`rows_score` or :func:`attributes_score`.

    Notes
    -----
    Enorm 2016, algorithm 1 (doi:10.1145/2933267.2933315). It can be far from optimal: for the edges
    0-1 (10 rows), 0-2 (9), 0-3 (9) with attributes ab, a, b, b it leaves 18 rows, although 10 are
    possible (:func:`best_fusion`).

    >>> graph = OperatorGraph(attributes=(frozenset("ab"), frozenset("a"), frozenset()),
    ...     edges=((0, 1, 5.0), (0, 2, 5.0)))
    >>> [sorted(operators) for operators, _ in fused(graph, rows_score)]
    [[0, 1], [2]]
    """
    home = list(range(len(graph.attributes)))
    attributes = list(graph.attributes)
    edges: Sequence[Edge] = graph.edges
    while True:
        best, best_edge = 0.0, None
        # What is fused stays fused, and components only lose attributes.
        fusible_edges = []
        for edge in edges:
            source, target = home[edge[0]], home[edge[1]]
            if source == target or not (common := attributes[source] & attributes[target]):
                continue
            fusible_edges.append(edge)
            if (worth := score(edge, common)) > best:
                best, best_edge = worth, edge
        edges = fusible_edges
        if best_edge is None:
            return _components(home, attributes)
        home = _joined(home, attributes, best_edge)


def best_fusion(graph: OperatorGraph) -> tuple[Component, ...]:
    """Components that leave the fewest rows to shuffle, by trying every set of edges.

    There may be at most 12 edges. Of equally good results, it is one with the fewest fusions. The
    oracle of :func:`fused`, Enorm 2016.

    >>> graph = OperatorGraph(attributes=tuple(map(frozenset, ("ab", "a", "b", "b"))),
    ...     edges=((0, 1, 10.0), (0, 2, 9.0), (0, 3, 9.0)))
    >>> rows_between(graph, fused(graph, rows_score)), rows_between(graph, best_fusion(graph))
    (18.0, 10.0)
    """
    if len(graph.edges) > MOST_EDGES_ENUMERATED:
        raise ValueError(
            f"{len(graph.edges)} edges; expected at most {MOST_EDGES_ENUMERATED}, or greedy fusion"
        )
    return min(_possible(graph), key=lambda components: rows_between(graph, components))


def fewest_rows(graph: OperatorGraph) -> tuple[Component, ...]:
    """The best components found: by enumeration for small graphs, else by both scores.

    They leave the fewest rows to shuffle of all tried.

    Notes
    -----
    Enorm 2016, section 4.4.1 (doi:10.1145/2933267.2933315).

    >>> graph = OperatorGraph(attributes=(frozenset("a"),) * 2,
    ...     edges=((0, 1, 1.0),))
    >>> len(fewest_rows(graph))
    1
    """
    if len(graph.edges) <= MOST_EDGES_ENUMERATED:
        return best_fusion(graph)
    greedy = (fused(graph, rows_score), fused(graph, attributes_score))
    return min(greedy, key=lambda components: rows_between(graph, components))


def rows_between(graph: OperatorGraph, components: Iterable[Component]) -> float:
    """Rows that are still sent from one component to another, in the unit of the edges.

    Parameters
    ----------
    components : iterable of Component, all of them

    Notes
    -----
    Enorm 2016, figure 15 (doi:10.1145/2933267.2933315), as a share of all rows.

    >>> graph = OperatorGraph(attributes=(frozenset("a"), frozenset("b")),
    ...     edges=((0, 1, 3.0),))
    >>> rows_between(graph, fused(graph, rows_score))
    3.0
    """
    home = {
        operator: index for index, (operators, _) in enumerate(components) for operator in operators
    }
    return sum((rows for a, b, rows in graph.edges if home[a] != home[b]), 0.0)


def _possible(graph: OperatorGraph) -> Iterator[tuple[Component, ...]]:
    """Components for every set of edges across which fusion is possible, fewest edges first."""
    for number in range(len(graph.edges) + 1):
        for subset in combinations(graph.edges, number):
            home, attributes = list(range(len(graph.attributes))), list(graph.attributes)
            for edge in subset:
                home = _joined(home, attributes, edge)
                if not attributes[home[edge[0]]]:
                    break
            else:
                yield _components(home, attributes)


def _joined(home: list[int], attributes: list[frozenset[str]], edge: Edge) -> list[int]:
    """The component of each operator once an edge is fused; its source's has what both share."""
    survivor, absorbed = (home[operator] for operator in edge[:2])
    attributes[survivor] &= attributes[absorbed]
    return [survivor if owner == absorbed else owner for owner in home]


def _components(home: Sequence[int], attributes: Sequence[frozenset[str]]) -> tuple[Component, ...]:
    return tuple(
        (frozenset(n for n, owner in enumerate(home) if owner == first), attributes[first])
        for first in dict.fromkeys(home)
    )
