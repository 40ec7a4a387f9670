"""Networks that turn a history into features."""
