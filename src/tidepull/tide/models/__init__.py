"""Models of time: a file for each family, and the compiled bank of linear models."""
