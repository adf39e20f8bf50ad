"""From a shop's own documents to rows and passages: readers, alarm rows, passages, and the run that stores them."""
