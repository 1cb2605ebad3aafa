"""Import of recipients from a file: read it, name its columns, check every row, then save all rows or none."""
