"""E-mails: how one is written, how it is handed to a mail server, and what the server's answers mean."""
