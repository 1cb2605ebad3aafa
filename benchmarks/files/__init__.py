"""Measures the bytes of files: a gateway that gets or fetches them, and the worker that sends."""
