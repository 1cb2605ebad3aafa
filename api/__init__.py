"""The HTTP API: keys, routes and answers. A door like the pages: it calls the same actions and asks the same roles."""
