"""Sources of a queue: tables at Notion and Google that are read on a clock and written back to."""
