"""Looks up SPF, DKIM and DMARC of the domain that an e-mail account sends from, and says what to change."""
