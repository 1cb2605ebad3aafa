"""Serves the files of messages to gateways that fetch them, at addresses that nobody can guess."""
