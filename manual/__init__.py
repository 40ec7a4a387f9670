"""What makes the manual: pages from the commands themselves, the map, figures and notebooks."""
