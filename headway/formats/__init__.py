"""Reading and writing Headway's files: one decoder with positions, one way to edit YAML."""
