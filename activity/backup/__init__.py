"""Backup and restore: one folder with all rows of one moment, all files, and a list with their checksums."""
