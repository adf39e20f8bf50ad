"""From shop records to an adapter (not built yet: see docs/decisions.md)."""
