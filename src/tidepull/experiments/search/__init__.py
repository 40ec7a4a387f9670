"""Choosing hyperparameters: from the grids of a suite, or between their candidates."""
