"""The work of one pump on one account, for about a minute."""
