"""The ground that benchmarks measure on: databases of their own, and the rows of a busy year."""
