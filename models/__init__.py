"""From a prompt to text: engines, prompts, the writer, and the registry of base models."""
