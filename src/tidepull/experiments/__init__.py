"""Experiments: the loop, and everything that runs it many times."""
