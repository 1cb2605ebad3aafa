"""The health of accounts over the last days: what came back and who complained, and what follows (SPEC L3)."""
