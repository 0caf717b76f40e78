"""Declaration of files: fields, each with a kind, read strictly, shown as schema and page."""
