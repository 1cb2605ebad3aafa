"""The commands, one module per noun. Each has `add`, which describes it, and a function per verb."""
