"""Approval by a second person: when it is needed, who decides, and the requests (SPEC K3)."""
