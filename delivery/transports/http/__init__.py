"""Speaking HTTP: one exchange with every way to fail, the steps that kinds override, and files on their way out."""
