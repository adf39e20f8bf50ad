"""From a question set to a verdict (not built yet: see docs/decisions.md)."""
