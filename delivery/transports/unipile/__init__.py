"""LinkedIn and e-mail through Unipile."""
