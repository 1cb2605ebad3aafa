"""The metrics that Prometheus reads: counters that all processes share, and values of work, workers and servers."""
