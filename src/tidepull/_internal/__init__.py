"""Parts that every package may use and no user imports."""
