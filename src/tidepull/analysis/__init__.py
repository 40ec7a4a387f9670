"""From finished trials to tables and pictures; nothing here runs a trial."""
