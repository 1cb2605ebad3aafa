"""Recipients from a file: read it, say what its columns mean, check every row, and save it all or not at all."""
