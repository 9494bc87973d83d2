"""HTML pages: public ones from public facts alone, and the steward's internal page."""
