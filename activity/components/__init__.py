"""The components of pages: looks of states, times in words, plots. Pure."""
