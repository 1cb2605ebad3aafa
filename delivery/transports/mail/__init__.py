"""E-mail for transports: writing one, handing it to a mail server, and the meaning of the server's answers."""
