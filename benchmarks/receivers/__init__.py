"""Programs that take the messages of benchmarks, and are no part of Paceline."""
