"""One file for each format of logs."""
