"""The page of results beside the paper's."""
