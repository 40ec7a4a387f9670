"""The paper beside our trials: its table, its claims, and the page of results."""
