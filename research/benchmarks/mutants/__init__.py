"""Deliberate faults: how many of them do the quick tests of a module notice?"""
