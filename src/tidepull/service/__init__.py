"""The decision service: many named agents behind HTTP (extra `serve`)."""
