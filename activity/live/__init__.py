"""Live updates of open pages: sockets, their messages, and polling where sockets are blocked."""
