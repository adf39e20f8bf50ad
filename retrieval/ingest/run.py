"""From paths to stored documents: found, read in worker processes, screened, stored one by one.

Each document is stored in one transaction: killed at any point, the base holds what was stored before, whole.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from retrieval.disputes import find_disputes
from retrieval.documents import Documents, StoredDocument, document_id, now, series_of, version_in
from retrieval.families import Maker, catalogue, makers, resolve_vendor, slug, use_makers, vendor_title
from retrieval.ingest.document import DocumentUnreadable
from retrieval.ingest.prepare import FORMAT, Prepared, Screen
from retrieval.ingest.report import FileReport, IngestReport, Status, failed
from retrieval.ingest.sources import SourceFile, source_files
from retrieval.ingest.workers import Job, Readers
from retrieval.store import KnowledgeStore

Progress = Callable[[FileReport, int, int], None]
"""Called with (report of the file just done, files done, files in all)."""
AskMaker = Callable[[str, Sequence[str]], tuple[str, str] | None]
"""Asked with (name, likely vendors); gives (vendor, family) in free text, or None to leave the codes out."""
_Hints = tuple[str | None, str | None]


@dataclass(frozen=True)
class Options:
    """How to ingest.

    `vendor` and `family` say whose controller the documents speak of, in free text; without them what was said of the
    version before, else each document's own words decide. `screen` gives the reason why a text must not be taken over,
    or "" (a function that worker processes can import). `dry_run` reads and reports, and stores nothing. `prune` takes
    out documents whose file is gone from the folders given. `workers` see `retrieval.ingest.workers.Readers`.
    """

    vendor: str | None = None
    family: str | None = None
    screen: Screen | None = None
    dry_run: bool = False
    prune: bool = False
    workers: int | None = None


@dataclass(frozen=True)
class _Task:
    """A file to read. `told` is the maker as a person gave it, now or for the version before."""

    file: SourceFile
    sha256: str
    before: StoredDocument | None
    told: _Hints


def ingest(
    paths: Sequence[Path],
    store: KnowledgeStore,
    options: Options | None = None,
    progress: Progress | None = None,
    ask_maker: AskMaker | None = None,
) -> IngestReport:
    """Read files, folders and archives into the base; alarm rows and words can be searched when it returns.

    Vectors are made by `retrieval.index.build` afterwards, or by the next question.

    Args:
        paths: files, folders (walked, hidden files left out) and zip archives.
        store: the rows of the data home.
        options: see `Options`.
        progress: see `Progress`.
        ask_maker: asked where a document has codes and does not say whose controller it speaks of.

    Raises:
        StoreUnusable: the disk is full or the base cannot be written; documents stored before that stay.
        DocumentUnreadable: a path does not exist. Files that cannot be read are reported, not raised.
    """
    started = time.monotonic()
    chosen = options or Options()
    documents = Documents(store.database)
    documents.use_makers()
    report = IngestReport()
    with tempfile.TemporaryDirectory(prefix="faultwright-") as scratch:
        files = list(source_files(paths, Path(scratch), report.files))
        for trouble in report.files:
            if progress:
                progress(trouble, 0, len(files))
        hints = _maker(chosen.vendor, chosen.family, documents, chosen)
        tasks: list[_Task] = []
        first: dict[str, SourceFile] = {}
        for file in files:
            known = _known(file, documents, hints)
            if isinstance(known, _Task) and known.before is None and known.sha256 in first:
                known = FileReport(file.name, "duplicate", problems=(f"The same as {first[known.sha256].name}.",))
            if isinstance(known, FileReport):
                report.files.append(known)
                if progress and known.status == "failed":
                    progress(known, 0, len(files))
            else:
                first[known.sha256] = file
                tasks.append(known)
        done = len(files) - len(tasks)
        for made in _stored(tasks, documents, chosen, ask_maker):
            done += 1
            report.files.append(made)
            if progress:
                progress(made, done, len(files))
    _missing(paths, files, documents, report, prune=chosen.prune and not chosen.dry_run)
    if not chosen.dry_run:
        store.fill()
        documents.use_makers()
        if report.changed or report.removed:
            report.disputes = list(find_disputes(store, None).new)
    order = {file.name: n for n, file in enumerate(files)}
    report.files.sort(key=lambda file: order.get(file.name, -1))
    report.seconds = time.monotonic() - started
    return report


def _stored(
    tasks: Sequence[_Task], documents: Documents, options: Options, ask_maker: AskMaker | None
) -> Iterator[FileReport]:
    size = sum(task.file.path.stat().st_size for task in tasks if task.file.path.exists())
    with Readers(options.workers, size, len(tasks)) as readers:
        begun = time.monotonic()
        answers: dict[tuple[str, ...], _Hints | None] = {}
        for planned, found in zip(tasks, readers.read(_job(task, options) for task in tasks), strict=True):
            task, result = planned, found
            if isinstance(result, Prepared) and result.unclear and ask_maker is not None:
                told = _told(task, result, documents, options, ask_maker, answers)
                if told is not None:
                    task = replace(task, told=told)
                    result = next(readers.read([_job(task, options)]))
            made = _finished(result, task, documents, readers, options)
            made.seconds, begun = round(time.monotonic() - begun, 3), time.monotonic()
            yield made


def _told(
    task: _Task,
    found: Prepared,
    documents: Documents,
    options: Options,
    ask_maker: AskMaker,
    answers: dict[tuple[str, ...], _Hints | None],
) -> _Hints | None:
    """What a person says of a document; asked once per folder and set of makers that it names."""
    kind = (str(Path(task.file.stored_as).parent), *found.candidates)
    if kind not in answers:
        answer = ask_maker(task.file.name, found.candidates)
        answers[kind] = _maker(*answer, documents, options) if answer else None
    return answers[kind]


def _finished(
    found: Prepared | Exception, task: _Task, documents: Documents, readers: Readers, options: Options
) -> FileReport:
    if isinstance(found, Exception):
        return failed(task.file.name, found)
    if options.dry_run:
        return _reported(found, task.file, "would_update" if task.before else "would_add", "")
    if found.family:
        _remember(found.vendor, found.family, vendor_title(found.vendor, "en"), documents, options)
    return _store(found, task, documents, readers)


def _job(task: _Task, options: Options) -> Job:
    file = task.file
    name = document_id(file.stored_as, task.sha256)
    return Job(str(file.path), file.name, name, *task.told, makers(), options.screen)


def _maker(vendor: str | None, family: str | None, documents: Documents, options: Options) -> _Hints:
    """(vendor id, family id) from free text; a maker that the catalogue lacks is remembered."""
    if not vendor:
        if family:
            raise DocumentUnreadable(f"Family {family!r} is given without a vendor.", "give --vendor with it.")
        return None, None
    title = vendor.strip()
    try:
        vendor_id, family_id = resolve_vendor(title)
    except ValueError:
        vendor_id, family_id = slug(title), None
    if family:
        family_id = _family_in(vendor_id, family) or slug(family)
    elif vendor_id not in catalogue():
        family_id = vendor_id
    if not vendor_id or (family and not family_id):
        raise DocumentUnreadable(f"{vendor!r} {family or ''} has no letter or digit.", "give the maker's name.")
    if family_id:
        _remember(vendor_id, family_id, title, documents, options)
    return vendor_id, family_id


def _remember(vendor: str, family: str, title: str, documents: Documents, options: Options) -> None:
    """Know a maker or a family that the catalogue lacks, from now on."""
    if family in catalogue().get(vendor, {}).get("families", {}):
        return
    if not options.dry_run:
        documents.add_maker(vendor, family, title)
    use_makers((*makers(), Maker(vendor, family, title)))


def _family_in(vendor: str, family: str) -> str | None:
    """The family of a vendor that free text names: "0i-MF" is the 0i of FANUC."""
    from retrieval.codes import vendors_in  # noqa: PLC0415 - the patterns of all makers

    known: dict[str, Any] = catalogue().get(vendor, {})
    wanted = slug(family)
    if not known or wanted in known["families"]:
        return wanted or None
    named = {f for v, f in vendors_in(f"{known['title']['en']} {family}") if v == vendor and f}
    return named.pop() if len(named) == 1 else None


def _known(file: SourceFile, documents: Documents, hints: _Hints) -> FileReport | _Task:
    """A report where nothing is to be done, else the task."""
    try:
        with file.path.open("rb") as handle:
            sha256 = hashlib.file_digest(handle, "sha256").hexdigest()
    except OSError as error:
        return failed(file.name, error)
    before = documents.at_path(file.stored_as)
    told = hints if hints[0] else documents.told(file.stored_as)
    if before is not None and before.sha256 == sha256 and _same_maker(before, hints) and _read_by_this(before):
        return FileReport(file.name, "unchanged", before.id, before.vendor, before.family, before.pages)
    twin = documents.with_content(sha256)
    if twin is not None and twin.path != file.stored_as and before is None and _same_maker(twin, hints):
        if "!" in twin.path or Path(twin.path).exists():
            note = f"The same content as {twin.path}, which is in the base."
            return FileReport(file.name, "duplicate", twin.id, twin.vendor, twin.family, problems=(note,))
        documents.remove(twin)  # the file was moved
    return _Task(file, sha256, before, told)


def _same_maker(document: StoredDocument, hints: _Hints) -> bool:
    vendor, family = hints
    if vendor is not None and vendor == family:  # any controller of a maker that the catalogue lacks
        family = None
    return vendor in (None, document.vendor) and family in (None, document.family)


def _read_by_this(document: StoredDocument) -> bool:
    return bool(json.loads(document.report).get("format") == FORMAT)


def _store(found: Prepared, task: _Task, documents: Documents, readers: Readers) -> FileReport:
    file = task.file
    said = {"format": FORMAT, "problems": found.problems, "withheld": found.withheld, "told": task.told}
    if found.withheld_rows:
        said["withheld_rows"] = found.withheld_rows
    document = StoredDocument(
        id=document_id(file.stored_as, task.sha256),
        name=file.name,
        path=file.stored_as,
        series=series_of(file.stored_as, found.vendor, found.family),
        version=found.version or version_in(file.name),
        sha256=task.sha256,
        format=found.format,
        vendor=found.vendor,
        family=found.family,
        title=found.title,
        pages=found.pages,
        added_at=now(),
        current=True,
        report=json.dumps(said, ensure_ascii=False),
    )
    stored = documents.put(document, found.entries, found.chunks, readers.each)
    made = _reported(found, file, "updated" if task.before or stored.superseded else "added", document.id)
    made.new_passages = stored.made
    made.replaces = stored.superseded
    made.carried = stored.carried.rows
    made.left_behind = tuple(f"{left.entry_id} (by {left.by}): {left.why}" for left in stored.carried.left)
    return made


def _reported(found: Prepared, file: SourceFile, status: Status, document: str) -> FileReport:
    kinds = [entry.kind for entry in found.entries]
    return FileReport(
        name=file.name,
        status=status,
        document=document,
        vendor=found.vendor,
        family=found.family,
        pages=found.pages,
        alarms=kinds.count("alarm"),
        parameters=kinds.count("parameter"),
        passages=len(found.chunks),
        withheld=len(found.withheld),
        problems=(*found.problems, *found.withheld),
    )


def _missing(
    paths: Sequence[Path], files: Sequence[SourceFile], documents: Documents, report: IngestReport, *, prune: bool
) -> None:
    """Documents that came from one of `paths` and are not there any more."""
    here = {file.stored_as for file in files}
    broken = {str(Path(file.name)) for file in report.files if file.status == "failed"}
    for folder in (given.resolve() for given in paths if given.is_dir()):
        for document in documents.under(str(folder)):
            outer = document.path.split("!", 1)[0]
            if document.path in here or Path(document.path).exists() or Path(outer).name in broken:
                continue
            if prune:
                documents.remove(document)
                report.removed.append(document.path)
            else:
                report.gone.append(document.path)
