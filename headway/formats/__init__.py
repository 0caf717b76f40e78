"""Reading and writing our own files: one decoder that knows places, one way to edit YAML."""
