"""The settings of a person's notifications."""
