"""Advertising banners as arms, from the Criteo attribution dataset or from a made-up file of its
kind."""
