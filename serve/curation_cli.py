"""Commands of `faultwright knowledge` that change an entry: edit, diff, verify, settle, alias, note.

Codes follow in the same transaction as the change, words at once, vectors with the next question or index build.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from serve.terminal import IndexProgress, fail, known_errors, notice

if TYPE_CHECKING:
    from retrieval.notes import Note
    from retrieval.versions import Revision, Versions
    from serve.runtime import Runtime

EntryArgument = Annotated[str, typer.Argument(help="Id of an entry, or a code that only one has.", show_default=False)]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for a script.")]
HomeOption = Annotated[
    Path | None, typer.Option("--home", help="Data home (default: FAULTWRIGHT_HOME or the user's data folder).")
]
ByOption = Annotated[str | None, typer.Option("--by", help="Who does it; the login name where left out.")]
NamedOption = Annotated[str, typer.Option("--by", help="A person's name.", show_default=False)]
ReasonOption = Annotated[str, typer.Option("--reason", help="Why, in a sentence.")]


def opened(home: Path | None) -> Runtime:
    """The data home of a command."""
    from serve.runtime import Runtime
    from serve.settings import load_settings

    return Runtime(load_settings(home=home), progress=IndexProgress(), notice=notice)


def print_json(value: object) -> None:
    """A value as one line of JSON."""
    typer.echo(json.dumps(value, ensure_ascii=False))


def follow(runtime: Runtime) -> None:
    """What must follow a change: words of what changed, and what other sources say of it."""
    from retrieval.disputes import find_disputes

    find_disputes(runtime.store, runtime.searcher.embedder)


def revision_json(revision: Revision) -> dict[str, Any]:
    """A revision without its text."""
    shown = {name: getattr(revision, name) for name in ("seq", "by", "at", "reason")}
    return {**shown, "back_to_source": not revision.body}


def disputes_of(runtime: Runtime, entry_id: str) -> list[dict[str, Any]]:
    """What other sources of the same code say of an entry."""
    from retrieval.disputes import pairs_of

    found = []
    for pair in pairs_of(runtime.store, entry_id):
        other = pair.other_id if pair.entry_id == entry_id else pair.entry_id
        settled = {"by": pair.by, "at": pair.at} if pair.method == "person" else {"by": pair.method, "at": ""}
        found.append({"other": other, "verdict": pair.verdict, "similarity": pair.similarity, **settled})
    return found


def _done(runtime: Runtime, after: Versions, what: str, *, as_json: bool) -> None:
    follow(runtime)
    entry = runtime.store.entry(after.source.id) or after.current
    if as_json:
        print_json({"entry": entry.id, "status": entry.status, "revision": after.seq, "stale": after.stale})
    else:
        typer.echo(f"{entry.id}: {what} (revision {after.seq}, {entry.status}).")


def _one_of(*given: object) -> None:
    if sum(bool(value) for value in given) > 1:
        fail("give one of --file and --set, not both")


# ---- text ----
def edit(
    entry: EntryArgument,
    file: Annotated[Path | None, typer.Option("--file", help="YAML file with the new text; no editor.")] = None,
    assign: Annotated[
        list[str] | None, typer.Option("--set", help="field=value, as title.en=...; may be given again.")
    ] = None,
    by: ByOption = None,
    reason: ReasonOption = "",
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Write the shop's version of an entry.

    Opens the text in $EDITOR, or takes --file or --set. It is checked like a knowledge file, keeps what its source says
    for safety, and is unverified until somebody verifies it. The source's text stays: see diff and revert.
    """
    with known_errors():
        from agents.screening import refuse_hostile
        from retrieval import curation
        from retrieval.versions import read_version, versions

        _one_of(file, assign)
        runtime = opened(home)
        found = versions(runtime.store, entry)
        name, entry_id = curation.person(by), found.source.id
        options: dict[str, Any] = {"by": name, "reason": reason, "screen": refuse_hostile}
        if assign:
            after = curation.assign(runtime.store, entry_id, assign, **options)
        elif file is not None:
            given = file
            after = curation.edit(runtime.store, entry_id, lambda of: read_version(given, of), **options)
        else:
            after = _in_editor(runtime, found, options)
        _done(
            runtime, after, "the shop's version is in use" if after.revised else "back to its source", as_json=as_json
        )


def _in_editor(runtime: Runtime, found: Versions, options: dict[str, Any]) -> Versions:
    """Let a person edit the text; what was written is kept in a file until the base has taken it."""
    import click

    from retrieval import curation
    from retrieval.errors import RetrievalError
    from retrieval.versions import as_yaml, read_version

    entry_id = found.source.id
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        fail(f"no terminal to edit in. Type: faultwright knowledge edit {entry_id} --set title.en=...")
    path = runtime.settings.home / "edits" / f"{entry_id.replace('/', '-').replace(':', '-')}.yaml"
    path.parent.mkdir(exist_ok=True)
    text = (
        f"# The shop's version of {entry_id}. Save and close to store it; close unchanged to leave it.\n"
        "# Safety items of the source stay word for word; further ones may be added.\n" + as_yaml(found.current)
    )
    path.write_text(text, encoding="utf-8")
    try:
        click.edit(filename=str(path))
    except click.ClickException as error:
        fail(f"{error.message}; set EDITOR, or use --file {path}")
    if path.read_text(encoding="utf-8") == text:
        path.unlink()
        fail("closed unchanged: nothing was stored")
    try:
        after = curation.edit(runtime.store, entry_id, lambda of: read_version(path, of), seen=found.seq, **options)
    except RetrievalError as error:
        fail(f"{error} Your text is kept: faultwright knowledge edit {entry_id} --file {path}")
    path.unlink()
    return after


def diff(
    entry: Annotated[str, typer.Argument(help="An entry or a document.", show_default=False)],
    other: Annotated[str | None, typer.Argument(help="Another one; else the source or the version before.")] = None,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Show what a version changes.

    An entry: its source against the shop's version, or against another entry. A document: the version before against
    the newest, or two versions by their ids.
    """
    with known_errors():
        from retrieval.comparing import compared

        lines = compared(opened(home).store, entry, other)
        if as_json:
            print_json({"diff": lines})
            return
        colors = {"+": typer.colors.GREEN, "-": typer.colors.RED, "@": typer.colors.CYAN}
        for line in lines:
            typer.echo(typer.style(line, fg=colors.get(line[:1])))
        if not lines:
            typer.echo("They say the same.")


def verify(
    entry: EntryArgument,
    by: NamedOption,
    reason: ReasonOption = "",
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Vouch for an entry by name.

    You held what it says now against its sources. When a source changes, or the text is edited, the verification
    falls.
    """
    with known_errors():
        from retrieval import curation
        from retrieval.versions import versions

        runtime = opened(home)
        found = versions(runtime.store, entry)
        if found.stale and not as_json:
            notice("its source changed since the shop's version was made; the shop's version is what is verified")
        name = curation.person(by)
        after = curation.verify(runtime.store, found.source.id, by=name, reason=reason)
        _done(runtime, after, f"verified by {name}", as_json=as_json)
        if not as_json and any(pair["verdict"] == "different" for pair in disputes_of(runtime, after.source.id)):
            notice(f"another source says otherwise. See: faultwright knowledge show {after.source.id}")


def unverify(
    entry: EntryArgument,
    by: ByOption = None,
    reason: ReasonOption = "",
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Take a verification back."""
    with known_errors():
        from retrieval import curation
        from retrieval.versions import versions

        runtime = opened(home)
        found = versions(runtime.store, entry)
        after = curation.unverify(runtime.store, found.source.id, by=curation.person(by), reason=reason)
        _done(runtime, after, "the verification is taken back", as_json=as_json)


def revert(
    entry: EntryArgument,
    to: Annotated[int, typer.Option("--to", min=0, help="Number of a revision; 0 = the source.")] = 0,
    by: ByOption = None,
    reason: ReasonOption = "",
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Go back to the source, or an older revision.

    The history stays: what was reverted can be had again with --to.
    """
    with known_errors():
        from agents.screening import refuse_hostile
        from retrieval import curation
        from retrieval.versions import versions

        runtime = opened(home)
        found = versions(runtime.store, entry)
        name = curation.person(by)
        after = curation.revert(runtime.store, found.source.id, by=name, reason=reason, to=to, screen=refuse_hostile)
        _done(runtime, after, f"back to {f'revision {to}' if to else 'its source'}", as_json=as_json)


def alias(
    entry: EntryArgument,
    spelling: Annotated[str, typer.Argument(help="A code as the control shows it, or words.", show_default=False)],
    family: Annotated[str | None, typer.Option("--family", help="Family of the controller, for a code.")] = None,
    by: ByOption = None,
    reason: ReasonOption = "",
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Let another code or words lead to an entry.

    A code is the shop's claim that both mean the same: the entry is to be verified again.
    """
    with known_errors():
        from agents.screening import refuse_hostile
        from retrieval import curation
        from retrieval.versions import versions

        runtime = opened(home)
        found = versions(runtime.store, entry)
        after, stored = curation.alias(
            runtime.store,
            found.source.id,
            spelling,
            family=family,
            by=curation.person(by),
            reason=reason,
            screen=refuse_hostile,
        )
        _done(runtime, after, f"{stored} leads to it", as_json=as_json)


def settle(
    entry: EntryArgument,
    other: Annotated[str, typer.Argument(help="The entry of the other source.", show_default=False)],
    by: NamedOption,
    same: Annotated[
        bool | None, typer.Option("--same/--different", help="Do both say the same of the code?", show_default=False)
    ] = None,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Settle whether two sources agree.

    --same ends a dispute, --different makes one. It holds until one of the two texts changes; answers show both either
    way.
    """
    with known_errors():
        from retrieval.curation import person
        from retrieval.disputes import settle as store_verdict

        if same is None:
            fail("say whether both mean the same: --same or --different")
        runtime = opened(home)
        pair = store_verdict(runtime.store, entry, other, "same" if same else "different", by=person(by))
        if as_json:
            print_json({"entry": pair.entry_id, "other": pair.other_id, "verdict": pair.verdict, "by": pair.by})
        else:
            typer.echo(f"{pair.entry_id} and {pair.other_id}: {pair.verdict}, says {pair.by}.")


# ---- notes ----
def note(
    entry: Annotated[str | None, typer.Argument(help="Id of an entry, or its code.", show_default=False)] = None,
    text: Annotated[str | None, typer.Argument(help="The note, in the shop's own words.", show_default=False)] = None,
    by: Annotated[str | None, typer.Option("--by", help="A person's name.")] = None,
    machine: Annotated[str, typer.Option("--machine", help='For one machine only: "lathe 3".')] = "",
    before: Annotated[str, typer.Option("--before", help="Item that the note stands before: c1.")] = "",
    after: Annotated[str, typer.Option("--after", help="Item that the note stands after.")] = "",
    move: Annotated[str, typer.Option("--move", help="Item that goes there, with the note beside it.")] = "",
    remove: Annotated[int | None, typer.Option("--remove", help="Take the note of this number out.")] = None,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Write a note that answers show, or remove one.

    For all machines, or for one: then questions with that --machine show it. A note may put a cause, check or action
    before another; what is said for safety comes first, whatever a note says.
    """
    with known_errors():
        from agents.screening import hostile
        from retrieval.curation import person
        from retrieval.notes import Place, add_note, remove_note
        from retrieval.versions import versions

        if remove is not None:
            if entry or text:
                fail("--remove takes the number of a note and nothing else")
            gone = remove_note(opened(home).store, remove)
            if as_json:
                print_json({"removed": note_json(gone)})
            else:
                typer.echo(f"Removed: {note_line(gone)}")
            return
        if not entry or not text:
            fail('needs an entry and a text: faultwright knowledge note fanuc/sv0401 "cable first" --by NAME')
        if by is None:
            fail("a note bears the name of who wrote it: give --by NAME")
        runtime = opened(home)
        made = add_note(
            runtime.store,
            versions(runtime.store, entry).source.id,
            text,
            by=person(by),
            machine=machine,
            place=Place(before, after, move),
            hostile=hostile,
        )
        if as_json:
            print_json(note_json(made))
        else:
            typer.echo(note_line(made))


def notes(
    entry: Annotated[str | None, typer.Argument(help="Of one entry only.")] = None,
    machine: Annotated[str, typer.Option("--machine", help="Only those that hold for this machine.")] = "",
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """List notes of the shop."""
    with known_errors():
        from retrieval.notes import for_machine
        from retrieval.notes import notes as stored
        from retrieval.versions import versions

        store = opened(home).store
        found = stored(store, [versions(store, entry).source.id] if entry else None)
        if machine:
            found = for_machine(found, machine)
        if as_json:
            print_json([note_json(item) for item in found])
            return
        for item in found:
            typer.echo(note_line(item))
        typer.secho(f"{len(found)} notes", dim=True, err=True)


def repairs(
    machine: Annotated[str, typer.Option("--machine", help="Only those of this machine.")] = "",
    remove: Annotated[str, typer.Option("--remove", metavar="ID", help="Take this one out.")] = "",
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """List what fixed which machine.

    As people said it in conversations; an answer for that machine shows it first, after what is said for safety.
    """
    with known_errors():
        from retrieval.repairs import remove_repair
        from retrieval.repairs import repairs as stored

        store = opened(home).store
        found = (remove_repair(store, remove),) if remove else stored(store, machine)
        if as_json:
            print_json([asdict(item) for item in found])
            return
        for item in found:
            code = f"{item.vendor}/{item.family} {item.code}" if item.code else item.entry_id
            typer.echo(f"{item.id[:6]}  {item.at[:10]}  {item.machine}: {code}: {item.action} - {item.by}")
        typer.secho("removed" if remove else f"{len(found)} repairs", dim=True, err=True)


def note_json(note: Note) -> dict[str, Any]:
    """A note for a script."""
    shown = {name: getattr(note, name) for name in ("id", "machine", "text", "by", "at")}
    place = {name: getattr(note.place, name) for name in ("before", "after", "move")}
    return {"entry": note.entry_id, **shown, **place}


def note_line(note: Note) -> str:
    """A note on one line."""
    parts = [f"move {note.place.move}"] if note.place.move else []
    parts += [f"before {note.place.before}"] if note.place.before else []
    parts += [f"after {note.place.after}"] if note.place.after else []
    where = f" [{' '.join(parts)}]" if parts else ""
    machine = f" ({note.machine})" if note.machine else ""
    return f"note {note.id}: {note.entry_id}{machine}{where}: {note.text} - {note.by}, {note.at[:10]}"


Row = tuple[str, Callable[..., None], Sequence[str]]
COMMANDS: Iterable[Row] = (
    (
        "edit",
        edit,
        (
            "faultwright knowledge edit fanuc/sv0401",
            'faultwright knowledge edit SV0401 --set "component=drive" --by "Li Wei"',
            'faultwright knowledge edit SV0401 --file sv0401.yaml --reason "our manual"',
        ),
    ),
    ("diff", diff, ("faultwright knowledge diff fanuc/sv0401", "faultwright knowledge diff alarms.xlsx")),
    ("verify", verify, ('faultwright knowledge verify fanuc/sv0401 --by "Li Wei"',)),
    ("unverify", unverify, ("faultwright knowledge unverify fanuc/sv0401",)),
    ("revert", revert, ("faultwright knowledge revert fanuc/sv0401", "faultwright knowledge revert SV0401 --to 2")),
    (
        "settle",
        settle,
        ('faultwright knowledge settle fanuc/sv0401 doc-1a2b3c4d5e/sv0401 --same --by "Li Wei"',),
    ),
    (
        "alias",
        alias,
        (
            "faultwright knowledge alias fanuc/sv0401 414 --family 16i",
            'faultwright knowledge alias fanuc/sv0401 "drives will not come up"',
        ),
    ),
    (
        "note",
        note,
        (
            'faultwright knowledge note SV0401 "cable first" --machine "lathe 3" --by "Li Wei"',
            'faultwright knowledge note SV0401 "seldom here" --move c3 --before c1 --by "Li Wei"',
            "faultwright knowledge note --remove 4",
        ),
    ),
    (
        "repairs",
        repairs,
        ('faultwright knowledge repairs --machine "lathe 3"', "faultwright knowledge repairs --remove 4f06a6"),
    ),
    ("notes", notes, ("faultwright knowledge notes", 'faultwright knowledge notes --machine "lathe 3"')),
)
