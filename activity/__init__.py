"""Records and pages: the ledger at the bottom, page components above it, pages and live updates on top."""
