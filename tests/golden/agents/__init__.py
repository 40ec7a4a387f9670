"""Agents that earlier releases made, which every later one must open."""
