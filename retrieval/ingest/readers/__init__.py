"""One module per format: from a file to blocks (`retrieval.ingest.document`)."""
