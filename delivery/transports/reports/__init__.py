"""What each service reports, and how it proves that the report is its own."""
