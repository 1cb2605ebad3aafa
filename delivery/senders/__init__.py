"""Deals recipients to the accounts that send to them: the rule, in Python and in SQL."""
