"""The pages of the API: a person's own keys, and a page to try the routes."""
