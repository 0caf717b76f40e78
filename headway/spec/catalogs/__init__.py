"""Node catalogues that come with Headway, as spec files of the kind NodeCatalog."""
