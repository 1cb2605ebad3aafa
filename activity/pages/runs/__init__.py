"""The pages of runs: lists, one run, its results, and what a person does to runs."""
