"""What to run: suites in TOML, their grids and seeds, and each trial as data."""
