"""YAML files to domain nouns and back; all faults at once, each with its position in the file."""
