"""`faultwright knowledge`: the base as a person looks at it: check, list, show, documents, export and import.

What changes an entry is in `serve.curation_cli`; the commands are put together here.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from serve import curation_cli
from serve.curation_cli import EntryArgument, HomeOption, JsonOption, follow, opened, print_json
from serve.terminal import NOTHING, fail, known_errors, notice

if TYPE_CHECKING:
    from retrieval.listing import Listed
    from retrieval.versions import Versions

EXIT_CODES = "Exit codes: 0 done, 2 wrong usage or data that cannot be used."


def _epilog(*examples: str, exits: str = EXIT_CODES) -> str:
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in examples) + f"\n\n{exits}"


knowledge_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="The knowledge base: look, change, vouch, carry over.",
    epilog=_epilog(
        "faultwright knowledge list --search spindle",
        "faultwright knowledge show fanuc/sv0401",
        'faultwright knowledge note fanuc/sv0401 "cable first" --by "Li Wei"',
    ),
)


@knowledge_app.command(
    "check", epilog=_epilog("faultwright knowledge check", "faultwright knowledge check my-entries/")
)
def check(
    folder: Annotated[Path | None, typer.Argument(help="Folder of YAML files; the base in use where left out.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Check knowledge files and count entries.

    Each is held against the schema and against the others; the first fault is named with file, entry and field.
    """
    with known_errors():
        from collections import Counter

        from agents.screening import refuse_hostile
        from retrieval.base import knowledge_files, load_entries, starter_folder
        from serve.settings import load_settings

        entries = load_entries(knowledge_files(folder or load_settings().knowledge or starter_folder()))
        refuse_hostile(entries)
        kinds = Counter(entry.kind for entry in entries)
        statuses = Counter(entry.status for entry in entries)
        if as_json:
            print_json({"entries": len(entries), "kinds": kinds, "statuses": statuses})
        else:
            typer.echo(f"{len(entries)} entries: {_counts(kinds)}; {_counts(statuses)}")


def _counts(counter: Mapping[Any, int]) -> str:
    return ", ".join(f"{n} {name}" for name, n in sorted(counter.items()))


@knowledge_app.command(
    "list",
    epilog=_epilog(
        "faultwright knowledge list --vendor siemens --status unverified",
        "faultwright knowledge list --search 主轴",
        "faultwright knowledge list --stale",
    ),
)
def list_entries(
    vendor: Annotated[str | None, typer.Option("--vendor", help="fanuc, siemens ... or fanuc/30i.")] = None,
    family: Annotated[str | None, typer.Option("--family", help="A family of controllers: 30i, sinamics ...")] = None,
    kind: Annotated[
        Literal["alarm", "guide", "procedure", "parameter"] | None, typer.Option("--kind", help="One kind only.")
    ] = None,
    status: Annotated[
        Literal["verified", "machine_checked", "unverified", "disputed"] | None,
        typer.Option("--status", help="How far they are checked."),
    ] = None,
    document: Annotated[str | None, typer.Option("--document", help="Rows of one document: its name or id.")] = None,
    disputed: Annotated[bool, typer.Option("--disputed", help="Those that another source contradicts.")] = False,
    stale: Annotated[
        bool, typer.Option("--stale", help="Those whose source changed under the shop's version.")
    ] = False,
    search: Annotated[str, typer.Option("--search", help="Words that must all stand in the entry.")] = "",
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """List entries: status, id, codes, title.

    Marks: R the shop's version, S its source changed since, D disputed, N notes.
    """
    with known_errors():
        from retrieval.listing import Filter, listed

        runtime = opened(home)
        vendor_id, named = runtime.machine(vendor, None) if vendor else (None, None)
        document_id = runtime.documents.find(document).id if document else None
        if disputed or status == "disputed":
            follow(runtime)
        chosen = Filter(vendor_id, family or named, kind, status, document_id, disputed, stale, search)
        rows = listed(runtime.store, chosen)
        if as_json:
            print_json([_row_json(row) for row in rows])
            return
        for row in rows:
            typer.echo(_row(row))
        marks = "; R the shop's version, S stale, D disputed, N notes" if rows else ""
        typer.secho(f"{len(rows)} entries{marks}", dim=True, err=True)


def _row_json(row: Listed) -> dict[str, Any]:
    e = row.entry
    return {
        "id": e.id,
        "kind": e.kind,
        "vendor": e.vendor,
        "codes": [str(code) for code in e.fault_codes],
        "title": e.title.model_dump(),
        "status": e.status,
        "verified_by": e.verified_by,
        "document": row.document,
        "revised": row.revised,
        "stale": row.stale,
        "disputed_with": row.disputed_with,
        "notes": row.notes,
        "follows": row.follows,
    }


def _row(row: Listed) -> str:
    e = row.entry
    flags = zip("RSDN", (row.revised, row.stale, row.disputed_with, row.notes), strict=True)
    marks = "".join(letter if on else " " for letter, on in flags)
    codes = " ".join(dict.fromkeys(f"{key.code}-{key.last}" if key.last else key.code for key in e.keys))
    title = " / ".join(text for text in (e.title.en, e.title.zh) if text)
    line = f"{e.status:<15} {marks} {fit(e.id, 30)} {fit(codes, 16)} {fit(title, 30)}"
    return f"{line.rstrip()}\n{'':<21}the document has a newer row: {row.follows}" if row.follows else line.rstrip()


def fit(text: str, columns: int) -> str:
    """A text on one line in exactly that many columns of a terminal; a Chinese character takes two."""
    text = " ".join(text.split())
    widths = [2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text]
    if sum(widths) > columns:
        kept, taken = 0, 0
        while taken + widths[kept] < columns:
            taken += widths[kept]
            kept += 1
        text, widths = text[:kept] + "…", [*widths[:kept], 1]
    return text + " " * (columns - sum(widths))


@knowledge_app.command(
    "show",
    epilog=_epilog(
        "faultwright knowledge show fanuc/sv0401",
        "faultwright knowledge show SV0401 --language zh",
        "faultwright knowledge show fanuc/sv0401 --yaml > sv0401.yaml",
    ),
)
def show(
    entry: EntryArgument,
    language: Annotated[Literal["en", "zh"], typer.Option("--language", help="Language of the text.")] = "en",
    as_yaml: Annotated[bool, typer.Option("--yaml", help="Print the text as YAML, to be edited.")] = False,
    source: Annotated[bool, typer.Option("--source", help="The source's text, not the shop's version.")] = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Show an entry: text, versions, notes, disputes."""
    with known_errors():
        from agents.lookup import entry_text
        from retrieval.notes import notes
        from retrieval.versions import as_yaml as yaml_of
        from retrieval.versions import versions

        runtime = opened(home)
        found = versions(runtime.store, entry)
        shown = found.source if source else runtime.store.entry(found.source.id) or found.current
        if as_yaml:
            typer.echo(yaml_of(shown), nl=False)
            return
        against = curation_cli.disputes_of(runtime, shown.id)
        on_it = notes(runtime.store, [shown.id])
        if as_json:
            print_json(
                {
                    "entry": shown.model_dump(mode="json"),
                    "document": found.document,
                    "superseded": found.superseded,
                    "stale": found.stale,
                    "revisions": [curation_cli.revision_json(r) for r in found.history],
                    "notes": [curation_cli.note_json(note) for note in on_it],
                    "disputes": against,
                }
            )
            return
        typer.echo(f"{shown.id} ({shown.kind}, {shown.vendor})\n")
        typer.echo(entry_text(shown, None, language))
        _about(found, against)
        for note in on_it:
            typer.echo(curation_cli.note_line(note))


def _about(found: Versions, against: Sequence[Mapping[str, Any]]) -> None:
    """What stands beside the text: where it comes from, its versions, what contradicts it."""
    typer.echo("")
    if found.current.status_note:
        typer.echo(f"status: {found.current.status}: {found.current.status_note}")
    if found.superseded:
        typer.echo("superseded: its document has a newer version")
    for revision in found.history:
        became = "the shop's version" if revision.body else "back to the source"
        typer.echo(f"revision {revision.seq}: {revision.at[:10]} {revision.by}: {became}. {revision.reason}".rstrip())
    if found.stale:
        typer.echo(f"stale: the source changed since. See: faultwright knowledge diff {found.source.id}")
    for pair in against:
        typer.echo(f"{pair['verdict']}: {pair['other']} ({pair['by']})")


@knowledge_app.command(
    "documents", epilog=_epilog("faultwright knowledge documents", "faultwright knowledge documents --all --json")
)
def documents(
    old: Annotated[bool, typer.Option("--all", help="Older versions too.")] = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """List the documents taken over."""
    with known_errors():
        from retrieval.listing import documents as stored

        rows = stored(opened(home).store, old=old)
        if as_json:
            print_json(
                [
                    {
                        **{name: getattr(d, name) for name in ("id", "name", "path", "version", "format", "vendor")},
                        **{name: getattr(d, name) for name in ("family", "title", "pages", "added_at", "current")},
                        "rows": n,
                        "passages": passages,
                    }
                    for d, n, passages in rows
                ]
            )
            return
        for d, n, passages in rows:
            maker = "/".join(part for part in (d.vendor, d.family) if part) or "-"
            pages = f"{d.pages} p." if d.pages else ""
            state = d.version or ("current" if d.current else "older")
            counted = f"{n:>5} rows {passages:>5} pass."
            columns = (fit(d.name, 24), fit(state, 8), fit(maker, 14), f"{pages:>6}", counted, d.added_at[:10])
            typer.echo(" ".join((d.id, *columns)))
        typer.secho(f"{len(rows)} documents", dim=True, err=True)


@knowledge_app.command(
    "remove", epilog=_epilog("faultwright knowledge remove alarms.xlsx", "faultwright knowledge remove 3f2a91 --yes")
)
def remove(
    document: Annotated[str, typer.Argument(help="Name or id of a document, see `knowledge documents`.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Take a document out, all its versions.

    Its rows and passages go. What the shop wrote on its rows waits in the base for the same document.
    """
    with known_errors():
        from retrieval.listing import written_on

        runtime = opened(home)
        found = runtime.documents.find(document)
        versions_made, notes_made = written_on(runtime.store, found)
        if not yes:
            if not sys.stdin.isatty():
                fail(f"taking out {found.name} ({found.id}) needs --yes where nobody can be asked")
            lost = (
                f", {versions_made} of its rows have a version of the shop, {notes_made} notes" if versions_made else ""
            )
            typer.confirm(f"Take out {found.name} ({found.id}){lost}?", abort=True, err=True)
        runtime.documents.remove(found)
        follow(runtime)
        if as_json:
            print_json({"removed": found.id, "name": found.name, "revisions": versions_made, "notes": notes_made})
        else:
            typer.echo(f"{found.name} is out: its rows and passages are found no more.")
            if versions_made or notes_made:
                notice(f"{versions_made} revisions and {notes_made} notes on its rows wait for it")


@knowledge_app.command(
    "export", epilog=_epilog("faultwright knowledge export base.yaml", "faultwright knowledge export base.jsonl --json")
)
def export(
    file: Annotated[Path, typer.Argument(help="File to write: YAML, or JSON lines where it ends in .jsonl.")],
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Write the whole base to one file.

    Entries with the shop's versions, verifications, codes, notes and settled disputes. Passages of documents are not in
    it: ingest the documents again.
    """
    with known_errors():
        from retrieval import exchange

        if file.exists() and not force:
            fail(f"{file} is there already; give --force to write over it")
        counts = exchange.export(opened(home).store, file)
        if as_json:
            print_json({"file": str(file), **counts})
        else:
            typer.echo(f"{file}: {_counts({name: n for name, n in counts.items() if n})}")


@knowledge_app.command(
    "import",
    epilog=_epilog(
        "faultwright knowledge import base.yaml --dry-run",
        "faultwright knowledge import base.yaml --theirs",
        exits="Exit codes: 0 done, or nothing to do. 1 --dry-run found conflicts. 2 wrong usage, a conflict without"
        " --ours or --theirs, data that cannot be used.",
    ),
)
def take_over(
    file: Annotated[Path, typer.Argument(help="File that `knowledge export` wrote.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done.")] = False,
    ours: Annotated[bool, typer.Option("--ours", help="In a conflict keep what is here.")] = False,
    theirs: Annotated[bool, typer.Option("--theirs", help="In a conflict take what the file says.")] = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Merge an exported file, whole or not at all.

    A second time it changes nothing. An entry that both sides changed, or whose sources differ, is a conflict.
    """
    with known_errors():
        from agents.screening import hostile, refuse_hostile
        from retrieval import merging

        if ours and theirs:
            fail("give one of --ours and --theirs")
        prefer: Literal["ours", "theirs"] | None = "ours" if ours else "theirs" if theirs else None
        runtime = opened(home)
        report = merging.take_over(
            runtime.store, file, prefer=prefer, dry_run=dry_run, screen=refuse_hostile, hostile=hostile
        )
        if not dry_run:
            follow(runtime)
        if as_json:
            print_json({**vars(report), "dry_run": dry_run})
        else:
            done = "would be taken over" if dry_run else "taken over"
            counted = {
                "documents": len(report.documents),
                "entries": len(report.entries),
                "revisions": len(report.revisions),
                "notes": report.notes,
                "settled disputes": report.settled,
                "makers": report.makers,
            }
            typer.echo(f"{_counts({name: n for name, n in counted.items() if n}) or 'Nothing new'} {done}.")
            for entry_id, how in report.conflicts:
                notice(f"{entry_id}: {how}" + (f"; {prefer} counts" if prefer else ""))
        raise typer.Exit(NOTHING if dry_run and report.conflicts and prefer is None else 0)


for name, command, examples in curation_cli.COMMANDS:
    knowledge_app.command(name, epilog=_epilog(*examples))(command)
