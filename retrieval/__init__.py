"""From documents to evidence: code grammar, records, knowledge base, index, search."""
