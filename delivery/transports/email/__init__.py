"""E-mail through any mail server, by SMTP and IMAP."""
