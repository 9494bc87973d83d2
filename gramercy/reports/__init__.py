"""Pages for people: one for everyone from public facts alone, one for the steward's eyes only."""
