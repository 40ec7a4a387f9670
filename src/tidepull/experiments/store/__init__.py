"""Results on disk: trials, plans, and the index over them."""
