"""The pages on which a reminder is written: Message, Recipients, When, Review.

The reminder itself is the state, from the first letter on. So Back, reload, another browser and tomorrow all find
what was saved, and a scheduled reminder is edited on the same pages.
"""
