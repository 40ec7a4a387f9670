"""Policies of other libraries as tidepull policies, one file for each library, found by the prefix of their ids.

A guest plays at the settings that its own documentation recommends, if nothing is set. It decides and learns as its
library does, bugs included; `docs/neighbours.md` says what each one sees of a context, and what was found on the way.
"""
