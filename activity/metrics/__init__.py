"""What Prometheus reads: counters that all processes share, and current values of work, workers and servers."""
