"""Everything about one person: as a file for them, and erased when they ask for it."""
