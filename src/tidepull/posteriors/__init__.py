"""Exact Bayesian beliefs about rewards."""
