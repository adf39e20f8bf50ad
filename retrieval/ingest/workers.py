"""Worker processes that read files: one that brings a parser down costs that file and nothing else."""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any

from retrieval.errors import RetrievalError
from retrieval.families import Maker, makers, use_makers
from retrieval.ingest.document import DocumentUnreadable
from retrieval.ingest.prepare import Prepared, Screen, prepare

# A worker takes a second to start: a few small files are read faster in a single one.
SMALL_BYTES = 2_000_000
MOST_WORKERS = 4
# Documents that are read ahead of the one being stored, per worker: enough to keep them busy, little to hold.
AHEAD = 2
# Passages from which on their words are made by several processes.
MANY_PASSAGES = 400


@dataclass(frozen=True)
class Job:
    """One file to read, as plain data: see `retrieval.ingest.prepare.prepare`."""

    path: str
    name: str
    document_id: str
    vendor: str | None
    family: str | None
    makers: tuple[Maker, ...]
    screen: Screen | None


def _read(job: Job) -> Prepared:
    return prepare(job.path, job.name, job.document_id, job.vendor, job.family, job.makers, job.screen)


def _read_here(job: Job) -> Prepared:
    """Read in this process, whose makers are not to be those that the job was made with."""
    before = makers()
    try:
        return _read(job)
    finally:
        use_makers(before)


class Readers:
    """A pool of reading processes.

    Args:
        workers: how many; 0 reads in this process; None: one for little, else as many as there are cores, at most four.
        size: bytes to read in all.
        files: number of files.
    """

    def __init__(self, workers: int | None, size: int, files: int) -> None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
        most = min(cores, MOST_WORKERS)
        self.workers = workers if workers is not None else 1 if size < SMALL_BYTES and files < 8 else most
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Readers:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def read(self, jobs: Iterable[Job]) -> Iterator[Prepared | Exception]:
        """Results in the order of the jobs; a file that cannot be read gives the error that says why."""
        waiting: deque[tuple[Job, Future[Prepared] | None]] = deque()
        for job in jobs:
            waiting.append((job, self._submit(job)))
            if len(waiting) > AHEAD * max(self.workers, 1):
                yield self._result(*waiting.popleft())
        while waiting:
            yield self._result(*waiting.popleft())

    def each(self, function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
        """Apply `function` to `items` in order, on several cores where that is worth it."""
        if self.workers == 0 or len(items) < MANY_PASSAGES:
            return map(function, items)
        try:
            return iter(list(self._started().map(function, items, chunksize=100)))
        except BrokenProcessPool:  # a file that is read ahead brought a worker down; its own turn will name it
            self._close()
            return map(function, items)

    def _submit(self, job: Job) -> Future[Prepared] | None:
        if self.workers == 0:
            return None
        try:
            return self._started().submit(_read, job)
        except BrokenProcessPool:
            return None

    def _result(self, job: Job, future: Future[Prepared] | None) -> Prepared | Exception:
        try:
            if self.workers == 0:
                return _read_here(job)
            try:
                return future.result() if future is not None else self._alone(job)
            except BrokenProcessPool:  # this file or another one did it: alone, it shows
                return self._alone(job)
        except (RetrievalError, OSError) as error:
            return error
        except BrokenProcessPool:
            return DocumentUnreadable(
                f"{job.name} brought its reader down.",
                "open it in its own program and save it anew, then ingest that.",
            )
        except MemoryError:
            return DocumentUnreadable(f"{job.name} needs more memory than there is.", "split it into smaller files.")

    def _alone(self, job: Job) -> Prepared:
        self._close()
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as single:
            return single.submit(_read, job).result()

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(max(self.workers, 1), mp_context=multiprocessing.get_context("spawn"))
        return self._pool

    def _close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None
