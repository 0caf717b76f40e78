"""YAML files to domain nouns and back; every fault at once, each with its place in the file."""
