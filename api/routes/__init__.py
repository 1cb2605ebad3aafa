"""The routes of the API, one module per noun. Each calls the function that the pages call."""
