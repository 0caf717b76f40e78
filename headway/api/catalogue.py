"""What the catalogue of nodes knows: node types by their names, and prices of stores.

A plan that asks for neither is made without what reads spec files.
"""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from headway.domain import NodeType
from headway.domain.node_type import Platform
from headway.domain.writes import CheckpointStore, StorePrice
from headway.errors import InputError
from headway.spec.kinds.catalog import NodeCatalog
from headway.spec.parts import built_in_catalog, catalogued_type, store_price
from headway.spec.spec_file import load_spec_of


def node_type_named(name: str, catalog: str | Path | None, platform: Platform) -> NodeType:
    """A node type of a catalogue, by default of Headway's own, without what the platform keeps."""
    node_catalog = built_in_catalog() if catalog is None else _loaded(catalog)
    nodes = {node.name: node for node in node_catalog.nodes}
    if name not in nodes:
        where = "Headway's catalogue" if catalog is None else str(catalog)
        close_names = get_close_matches(name, nodes, n=1)
        hint = (
            f"did you mean {close_names[0]!r}?"
            if close_names
            else f"describe it, e.g. {name}:cores=4,memory=14g,price=0.192"
        )
        raise InputError(f"node type {name!r} is not in {where}; {hint}")
    return catalogued_type(nodes[name], platform, node_catalog)


def price_of_store(store: CheckpointStore, catalog: str | Path | None) -> StorePrice | None:
    """What a store charges; None if no catalogue has its price."""
    return store_price(store, None if catalog is None else _loaded(catalog))


def _loaded(catalog: str | Path) -> NodeCatalog:
    return load_spec_of(Path(catalog), NodeCatalog)
