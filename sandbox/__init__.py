"""A practice gateway: behaves like a messaging gateway, on one's own machine, and keeps a log of everything.

It is a program of its own (`python -m sandbox`) and imports nothing of Paceline: what it says it received is
the word of a witness. docs/sandbox.md tells how to use it.
"""
