"""Recipients: adding, finding, tagging and exporting them, and their consent."""
