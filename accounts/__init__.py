"""People, the accounts they send from, the recipients, and the roles that say who may see and change what."""
