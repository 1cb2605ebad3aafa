"""A practice gateway: behaves like a messaging gateway, on your own machine, and keeps a log of everything.

It is a program of its own (`python -m sandbox`) and imports nothing of Paceline, so that its log of received messages
is independent evidence. docs/sandbox.md tells how to use it.
"""
