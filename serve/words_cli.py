"""`faultwright words`: the shop's own words, and what search takes them for."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from serve.terminal import NOTHING, fail, known_errors

if TYPE_CHECKING:
    from retrieval.dictionary import Dictionary, Shop, Word

EXIT_CODES = "Exit codes: 0 done. 1 no such word. 2 wrong usage or a file that cannot be used."

HomeOption = Annotated[
    Path | None, typer.Option("--home", help="Data home (default: FAULTWRIGHT_HOME or the user's data folder).")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for a script.")]
ListOption = list[str] | None


def _epilog(*examples: str) -> str:
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in examples) + f"\n\n{EXIT_CODES}"


words_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Words of the shop floor: what search takes them for.",
    epilog=_epilog("faultwright words list 爬行", "faultwright words check the spindle growls"),
)


@words_app.command(
    "list",
    epilog=_epilog("faultwright words list", "faultwright words list 刀", "faultwright words list --shop --json"),
)
def list_command(
    text: Annotated[str, typer.Argument(help="Only words in which this stands.", show_default=False)] = "",
    shop: Annotated[bool, typer.Option("--shop", help="Only the shop's own words.")] = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """List the words in use, with their terms and what they mean."""
    with known_errors():
        dictionary = _dictionary(home)
        own = {word for word, of_shop in dictionary.by_spelling.values() if of_shop}
        wanted = text.casefold()
        words = [
            word
            for word in dictionary.words
            if (word in own or not shop) and wanted in json.dumps(_fields(word), ensure_ascii=False).casefold()
        ]
        if as_json:
            rows = [_fields(word) | {"of_shop": word in own} for word in words]
            typer.echo(json.dumps(rows, ensure_ascii=False))
            return
        for word in words:
            mark = "shop" if word in own else "    "
            typer.echo(f"{mark} {' / '.join(word.spellings)} = {', '.join((*word.zh, *word.en))}")
        own_count = sum(word in own for word in words)
        typer.secho(f"{len(words)} words, {own_count} of the shop", dim=True, err=True)


@words_app.command(
    "add",
    epilog=_epilog(
        "faultwright words add 憋气 --zh 气压过低 --en 'low air pressure' --meaning 气压不够",
        "faultwright words add whump --en 'knocking noise' --meaning 'a dull knock' --near axis",
        "faultwright words add 爬行         a built-in word that was removed is in use again",
    ),
)
def add_command(
    word: Annotated[str, typer.Argument(help="The word as it is said.")],
    zh: Annotated[ListOption, typer.Option("--zh", help="Chinese standard term, the nearest first.")] = None,
    en: Annotated[ListOption, typer.Option("--en", help="English standard term, the nearest first.")] = None,
    meaning: Annotated[
        ListOption, typer.Option("--meaning", help="One line in Chinese or English; once for each.")
    ] = None,
    also: Annotated[ListOption, typer.Option("--also", help="Another spelling of the word.")] = None,
    near: Annotated[
        ListOption, typer.Option("--near", help="It means this only where this word stands in the question too.")
    ] = None,
    unless: Annotated[
        ListOption, typer.Option("--unless", help="A longer expression in which it means something else.")
    ] = None,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Add a word of the shop, or change one.

    It wins over a built-in word of that spelling. --zh, --en, --also, --near and --unless may be given again. The next
    search knows it; nothing is built anew.
    """
    with known_errors():
        from retrieval.dictionary import Shop, spelling_key

        path, before, shop = _shop(home)
        if not (zh or en or meaning or also or near or unless):
            _switch_on(path, before, shop, word, as_json)
            return
        made = _checked(word, zh or (), en or (), meaning or (), also or (), near or (), unless or ())
        keys = {spelling_key(spelling) for spelling in made.spellings}
        others = [old for old in shop.words if spelling_key(old.word) != spelling_key(word)]
        for other in others:
            if taken := keys & {spelling_key(spelling) for spelling in other.spellings}:
                fail(f"{', '.join(sorted(taken))}: already a spelling of the shop's word {other.word!r}")
        switched_off = tuple(spelling for spelling in shop.switched_off if spelling_key(spelling) not in keys)
        _write(path, before, Shop((*others, made), switched_off))
        if as_json:
            typer.echo(json.dumps(_fields(made) | {"file": str(path)}, ensure_ascii=False))
        else:
            verb = "added" if len(others) == len(shop.words) else "changed"
            typer.echo(f"{verb}: {made.word} = {', '.join((*made.zh, *made.en))} ({path})")


def _checked(
    word: str,
    zh: Sequence[str],
    en: Sequence[str],
    meaning: Sequence[str],
    also: Sequence[str],
    near: Sequence[str],
    unless: Sequence[str],
) -> Word:
    from pydantic import ValidationError

    from retrieval.dictionary import Word, spelling_key
    from retrieval.tokens import has_chinese

    if not meaning:
        fail("no --meaning: one line that says what the word means, so that a person can check it")
    spellings = {spelling_key(spelling): spelling for spelling in reversed((word, *also))}
    try:
        return Word.model_validate(
            {
                "word": word,
                "also": [other for key, other in reversed(spellings.items()) if key != spelling_key(word)],
                "near": near,
                "unless": unless,
                "zh": zh,
                "en": en,
                "meaning": {"zh" if has_chinese(line) else "en": line for line in meaning},
            }
        )
    except ValidationError as error:
        first = error.errors()[0]
        field = str(first["loc"][0]) if first["loc"] else "word"
        fail(f"word {word[:60]!r}, {field}: {first['msg'].removeprefix('Value error, ')}")


def _switch_on(path: Path, before: bytes | None, shop: Shop, word: str, as_json: bool) -> None:
    """Put a built-in word that was switched off in use again, with all its spellings."""
    from retrieval.dictionary import Shop, built_in, spelling_key

    keys = {spelling_key(word)}
    for known in built_in():
        if spelling_key(known.word) in keys:
            keys |= {spelling_key(spelling) for spelling in known.spellings}
    back = [spelling for spelling in shop.switched_off if spelling_key(spelling) in keys]
    if not back:
        fail(f"{word!r} is no built-in word that was switched off: say what it stands for with --zh or --en, --meaning")
    kept = tuple(spelling for spelling in shop.switched_off if spelling not in back)
    _write(path, before, Shop(shop.words, kept))
    typer.echo(json.dumps({"switched_on": back}, ensure_ascii=False) if as_json else f"in use again: {', '.join(back)}")


@words_app.command("remove", epilog=_epilog("faultwright words remove whump", "faultwright words remove 打火"))
def remove_command(
    word: Annotated[str, typer.Argument(help="A word of the shop, or a built-in one.")],
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Take out a word of the shop, or switch a built-in one off.

    Of a word with several spellings its first one stands for all; another one goes alone. Where a word of the shop
    stood over a built-in one, that one holds again.
    """
    with known_errors():
        from retrieval.dictionary import Shop, built_in, spelling_key

        path, before, shop = _shop(home)
        key = spelling_key(word)
        if of_shop := _holder(shop.words, key, spelling_key):
            rest = [other for other in shop.words if other is not of_shop]
            if spelling_key(of_shop.word) != key:
                also = tuple(spelling for spelling in of_shop.also if spelling_key(spelling) != key)
                rest.append(of_shop.model_copy(update={"also": also}))
            removed, switched_off = [word], list(shop.switched_off)
            _write(path, before, Shop(tuple(rest), shop.switched_off))
        else:
            known = _holder(built_in(), key, spelling_key)
            off = {spelling_key(spelling) for spelling in shop.switched_off}
            if known is None or key in off:
                _no_such_word(word, home)
            removed = list(known.spellings) if spelling_key(known.word) == key else [word]
            switched_off = [*shop.switched_off, *(each for each in removed if spelling_key(each) not in off)]
            _write(path, before, Shop(shop.words, tuple(switched_off)))
        if as_json:
            typer.echo(json.dumps({"removed": removed, "switched_off": switched_off}, ensure_ascii=False))
        elif of_shop:
            typer.echo(f"removed: {word} ({path})")
        else:
            typer.echo(f"switched off: {', '.join(removed)} ({path})")


def _holder(words: Sequence[Word], key: str, spelling_key: Callable[[str], str]) -> Word | None:
    return next((word for word in words if key in map(spelling_key, word.spellings)), None)


def _no_such_word(word: str, home: Path | None) -> NoReturn:
    from difflib import get_close_matches

    near = get_close_matches(word.lower(), _dictionary(home).by_spelling, n=3)
    hint = f" Near it: {', '.join(near)}." if near else ""
    fail(f"no word {word!r} in use.{hint} See: faultwright words list", NOTHING)


@words_app.command(
    "check", epilog=_epilog("faultwright words check", "faultwright words check X轴低速爬行，主轴嗡嗡响")
)
def check_command(
    text: Annotated[list[str] | None, typer.Argument(help="A question: show what is found in it.")] = None,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Check the shop's file, and show what search makes of a question.

    The first fault is named with file, line and word.
    """
    with known_errors():
        dictionary = _dictionary(home)
        if text:
            expansion = dictionary.expand(" ".join(text))
            found = [
                {
                    "said": expansion.text[each.start : each.end],
                    "start": each.start,
                    "end": each.end,
                    "of_shop": each.of_shop,
                    **_fields(each.word),
                }
                for each in expansion.found
            ]
            if as_json:
                typer.echo(json.dumps({"text": expansion.text, "found": found}, ensure_ascii=False))
            else:
                typer.echo("\n".join(expansion.shown()) or "no word of the dictionary stands in it")
            return
        _, _, shop = _shop(home)
        counts = {
            "words": len(dictionary.words),
            "spellings": len(dictionary.by_spelling),
            "of_shop": len(shop.words),
            "switched_off": len(shop.switched_off),
        }
        shown = "{words} words in {spellings} spellings, {of_shop} of the shop; {switched_off} spellings switched off"
        typer.echo(json.dumps(counts) if as_json else shown.format(**counts))


def _dictionary(home: Path | None) -> Dictionary:
    from retrieval.dictionary import load_dictionary
    from serve.settings import load_settings

    return load_dictionary(load_settings(home=home).home)


def _shop(home: Path | None) -> tuple[Path, bytes | None, Shop]:
    """The shop's file, its bytes as they were read, and what it says."""
    from retrieval.dictionary import Shop, read_words, shop_file
    from serve.settings import load_settings

    path = shop_file(load_settings(home=home).home)
    before = _bytes(path)
    return path, before, Shop() if before is None else read_words(path)


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        fail(f"cannot read {path}: {error.strerror}")


def _fields(word: Word) -> dict[str, object]:
    return word.model_dump(mode="json")


def _write(path: Path, before: bytes | None, shop: Shop) -> None:
    """Write the shop's file anew, whole or not at all; the one before stays beside it as `words.yaml.bak`."""
    import yaml

    words = [word.model_dump(mode="json", exclude_defaults=True) for word in shop.words]
    body = {"switched_off": list(shop.switched_off), "words": words}
    partial = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(yaml.safe_dump(body, allow_unicode=True, sort_keys=False, width=120), encoding="utf-8")
        if _bytes(path) != before:
            fail(f"{path} was changed by somebody else meanwhile; nothing was written. Run the command again")
        if before is not None:
            path.with_suffix(".yaml.bak").write_bytes(before)
        partial.replace(path)
    except OSError as error:
        fail(f"cannot write {path}: {error.strerror}")
    finally:
        partial.unlink(missing_ok=True)
