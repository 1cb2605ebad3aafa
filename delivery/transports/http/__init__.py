"""HTTP for transports: one exchange with every way to fail, the steps that kinds override, and sending files."""
