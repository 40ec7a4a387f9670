"""An agent for your own decisions: named arms, contexts as dictionaries, late rewards, a ledger
that loses nothing."""
