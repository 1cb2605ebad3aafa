"""Import of items from a file: read it, name its columns, check every row, then save the good ones."""
