"""Errors of the retrieval room: each says what is wrong, where, and what to do next."""

from __future__ import annotations


class RetrievalError(Exception):
    """Base. `what` names the file, row or value and the reason; `next_step` is something a person can do now."""

    def __init__(self, what: str, next_step: str) -> None:
        super().__init__(f"{what} Next: {next_step}")
        self.what = what
        self.next_step = next_step

    def __reduce__(self) -> tuple[type[RetrievalError], tuple[str, str]]:
        """From a worker process it arrives whole: by default only the joined message would."""
        return type(self), (self.what, self.next_step)


class KnowledgeUnreadable(RetrievalError):
    """A YAML file of the knowledge base cannot be read or does not fit the schema."""


class StoreUnusable(RetrievalError):
    """The SQLite file of the data home cannot be opened, is damaged, or cannot be written."""


class IndexDamaged(RetrievalError):
    """Files of an index are missing, cut short, or differ from their manifest."""


class IndexMismatch(RetrievalError):
    """An index was made with another embedder, format or knowledge than asked for."""


class EmbedderUnavailable(RetrievalError):
    """The bundled embedder cannot be loaded on this machine."""
