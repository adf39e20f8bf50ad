"""Two sources, one code: do they say the same of it?

Entries of different sources that share a key are compared: by their words first, then by their vectors. Where they
plainly differ both get the status `disputed` (`KnowledgeStore.entries`); where it is open nothing is claimed. Either
way an answer shows both. A person settles what the comparison cannot.
"""

from __future__ import annotations

import hashlib
import math
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from retrieval.documents import now
from retrieval.embed import Embedder
from retrieval.records import KnowledgeEntry, Language
from retrieval.store import KnowledgeStore
from retrieval.units import texts_of
from retrieval.versions import CurationError, entry_id_of

Verdict = Literal["same", "different", "unsure"]
Method = Literal["words", "vectors", "no_vectors", "person"]
Vector = np.ndarray[tuple[int, ...], np.dtype[np.float32]]
_LANGUAGES: tuple[Language, Language] = ("en", "zh")
# How far two texts must stand out of the crowd: below the first they differ, from the second on they say the same. In
# standard deviations, see `Nearness`; measured in tests/test_disputes.py on pairs of the starter base.
DIFFERENT, SAME = 0.7, 3.5
COHORT = 400
LEAST_COHORT = 50
# The nearest of a cohort may say the very same; they are no measure of what is unrelated.
TRIMMED = 0.015
# Share of the shorter text's words that the longer one holds, from which on both say the same.
SAME_WORDS = 0.75
LEAST_WORDS = 3
BATCH = 500
_RUN = re.compile(r"[a-z0-9]+|[\u3400-\u9fff]+")
_EMPTY = frozenset("a an and are at by for from has in is it its no not of off on or that the to was when with".split())
_AMOUNT = "(?:voltage|current|speed|pressure|temperature)"
# What one title says and the other denies: voltage too high and too low are one word apart, and near as vectors.
_OPPOSITES: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...] = tuple(
    (re.compile(one, re.IGNORECASE), re.compile(other, re.IGNORECASE))
    for one, other in (
        (
            rf"\b(?:too |is )?high\b|\bover-?\s?{_AMOUNT}|过(?:高|压|电压|流|电流|热|温)|偏高|太高",
            rf"\b(?:too |is )?low\b|\bunder-?\s?{_AMOUNT}|过低|欠(?:压|电压|流)|偏低|太低|不足",
        ),
        (
            r"\bpositive\b|\bplus\b|(?<![a-z0-9])\+(?![a-z0-9])|正(?:向|方向|侧)",
            r"\bnegative\b|\bminus\b|(?<![a-z0-9])[-−](?![a-z0-9])|负(?:向|方向|侧)",
        ),
        (r"\b(?:stuck|is|not) open\b|打开|未关", r"\b(?:stuck|is) closed\b|关闭|未开"),
    )
)
_TABLE = """
CREATE TABLE IF NOT EXISTS comparison (
  entry_id TEXT NOT NULL, other_id TEXT NOT NULL, hash TEXT NOT NULL, other_hash TEXT NOT NULL, texts TEXT NOT NULL,
  verdict TEXT NOT NULL, method TEXT NOT NULL, by TEXT NOT NULL, at TEXT NOT NULL, PRIMARY KEY (entry_id, other_id)
)
"""
_SETTLED = "CREATE INDEX IF NOT EXISTS comparison_settled ON comparison (texts) WHERE method = 'person'"
_PAIRS = """
SELECT DISTINCT one.entry_id, other.entry_id, unit_one.hash, unit_other.hash
FROM code AS one JOIN code AS other ON other.vendor = one.vendor AND other.family = one.family
  AND other.code = one.code AND other.last = one.last AND other.kind = one.kind AND other.entry_id > one.entry_id
JOIN entry AS entry_one ON entry_one.id = one.entry_id JOIN entry AS entry_other ON entry_other.id = other.entry_id
JOIN unit AS unit_one ON unit_one.owner = one.entry_id JOIN unit AS unit_other ON unit_other.owner = other.entry_id
WHERE entry_one.document_id IS NOT entry_other.document_id
"""


@dataclass(frozen=True)
class Disputes:
    """What a comparison came to: pairs that are in dispute now and were not, pairs that no longer are, pairs compared.

    `second_look` is the number of pairs that wait for their vectors.
    """

    new: tuple[tuple[str, str], ...]
    gone: tuple[tuple[str, str], ...]
    checked: int
    second_look: int


@dataclass(frozen=True)
class Pair:
    """Two entries that share a key, and what came of comparing them. `by` and `at` where a person settled it."""

    entry_id: str
    other_id: str
    verdict: Verdict
    method: Method
    similarity: float | None
    by: str = ""
    at: str = ""


@dataclass(frozen=True)
class _Task:
    entry_id: str
    other_id: str
    hashes: tuple[str, str]


def find_disputes(store: KnowledgeStore, embedder: Embedder | None) -> Disputes:
    """Compare what shares a key and was not compared as it is now.

    Pairs whose texts changed are compared again, and those that had no vectors where they have some now; what a person
    settled holds for these very texts, in whatever document they come.

    Args:
        store: the rows; units that are missing are made.
        embedder: whose stored vectors to use; no model is run. None: words alone.
    """
    store.fill()
    with store.database.writing() as connection:
        tables(connection)
        pairs = connection.execute(_PAIRS).fetchall()
        query = "SELECT entry_id, other_id, hash, other_hash, method FROM comparison"
        known = {(one, other): rest for one, other, *rest in connection.execute(query)}
        before = _in_dispute(connection)
        _forget(connection, {(one, other) for one, other, *_ in pairs})
    tasks, waiting, embedded = [], 0, _with_vectors(store, embedder)
    for one, other, *hashes in pairs:
        was = known.get((one, other))
        if was is None or was[:2] != hashes:
            tasks.append(_Task(one, other, (hashes[0], hashes[1])))
        elif was[2] == "no_vectors" and one in embedded and other in embedded:
            tasks.append(_Task(one, other, (hashes[0], hashes[1])))
        else:
            waiting += was[2] == "no_vectors"
    checked = 0
    nearness = _nearness(store, embedder) if embedder and tasks else lambda _entries: None
    for start in range(0, len(tasks), BATCH):
        batch = tasks[start : start + BATCH]
        found = list(_compared(store, nearness, batch))
        waiting += sum(pair.method == "no_vectors" for pair, _, _ in found)
        checked += len(found)
        with store.database.writing() as connection:
            for pair, task, texts in found:
                _put(connection, pair, task.hashes, texts)
    with store.database.reading() as connection:
        after = _in_dispute(connection)
    return Disputes(tuple(sorted(after - before)), tuple(sorted(before - after)), checked, waiting)


def tables(connection: sqlite3.Connection) -> None:
    """Make the table of comparisons, inside the caller's transaction, where it is not there yet."""
    connection.execute(_TABLE)
    connection.execute(_SETTLED)


def _with_vectors(store: KnowledgeStore, embedder: Embedder | None) -> frozenset[str]:
    """Entries that have a vector."""
    if embedder is None:
        return frozenset()
    with store.database.reading() as connection:
        rows = connection.execute(
            "SELECT DISTINCT owner FROM unit JOIN passage ON unit_id = unit.id JOIN embedding ON"
            " embedding.hash = passage.hash AND embedder = ? WHERE unit.kind <> 'passage'",
            (embedder.id,),
        )
        return frozenset(row[0] for row in rows)


def _in_dispute(connection: sqlite3.Connection) -> frozenset[tuple[str, str]]:
    rows = connection.execute("SELECT entry_id, other_id FROM dispute WHERE verdict = 'different'")
    return frozenset((one, other) for one, other in rows)


def _forget(connection: sqlite3.Connection, pairs: set[tuple[str, str]]) -> None:
    """Take out pairs that share no key any more; what a person settled stays, for when the same texts meet again."""
    for table, where in (("dispute", ""), ("comparison", " WHERE method <> 'person'")):
        rows = connection.execute(f"SELECT entry_id, other_id FROM {table}{where}").fetchall()  # noqa: S608
        gone = [row for row in rows if row not in pairs]
        connection.executemany(f"DELETE FROM {table} WHERE entry_id = ? AND other_id = ?", gone)  # noqa: S608


def _put(connection: sqlite3.Connection, pair: Pair, hashes: tuple[str, str], texts: str) -> None:
    values = (pair.entry_id, pair.other_id)
    at = pair.at or now()
    connection.execute("INSERT OR REPLACE INTO dispute VALUES (?, ?, ?, ?)", (*values, pair.similarity, pair.verdict))
    connection.execute(
        "INSERT OR REPLACE INTO comparison VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*values, *hashes, texts, pair.verdict, pair.method, pair.by, at),
    )


# ---- comparing ----
class Nearness:
    """How near two texts are, measured against how near each is to texts about other things.

    The cosines of one embedder differ by language and length more than by meaning. The score is that of speaker
    verification (symmetric score normalisation): the cosine's distance from the mean of each side's cosines with a
    cohort of texts in the other's language, in standard deviations, averaged over both sides.

    Args:
        vectors: unit vectors by the hash of their text.
        cohorts: by language, unit vectors [n, dimension] of titles and meanings; fewer than `LEAST_COHORT` measure
            nothing.
    """

    def __init__(self, vectors: Mapping[str, Vector], cohorts: Mapping[Language, Vector]) -> None:
        self._vectors = vectors
        self._cohorts = cohorts
        self._known: dict[tuple[str, Language], tuple[float, float]] = {}

    def of(self, one: Head, other: Head) -> tuple[float, float] | None:
        """(score, cosine) of two texts; None where a vector or a cohort is missing."""
        if one.hash not in self._vectors or other.hash not in self._vectors:
            return None
        mine, theirs = self._crowd(one, other.language), self._crowd(other, one.language)
        if mine is None or theirs is None:
            return None
        cosine = float(self._vectors[one.hash] @ self._vectors[other.hash])
        return sum((cosine - mean) / spread for mean, spread in (mine, theirs)) / 2, cosine

    def _crowd(self, head: Head, language: Language) -> tuple[float, float] | None:
        cohort = self._cohorts.get(language)
        if cohort is None or len(cohort) < LEAST_COHORT:
            return None
        if (head.hash, language) not in self._known:
            cosines = np.sort(cohort @ self._vectors[head.hash])
            kept = cosines[: len(cosines) - math.ceil(TRIMMED * len(cosines))]
            self._known[head.hash, language] = float(kept.mean()), max(float(kept.std()), 1e-6)
        return self._known[head.hash, language]


@dataclass(frozen=True)
class Head:
    """Title and meaning of an entry in one language, as it is embedded."""

    language: Language
    text: str
    hash: str


def heads(entry: KnowledgeEntry) -> dict[Language, Head]:
    """What is compared of an entry, in the languages that it has."""
    found: dict[Language, Head] = {}
    for text in texts_of(entry):  # the first of each language is title and meaning
        if getattr(entry.title, text.language) or getattr(entry.meaning, text.language):
            found.setdefault(text.language, Head(text.language, text.text, text.hash))
    return found


def compare(
    one: KnowledgeEntry, other: KnowledgeEntry, nearness: Nearness | None
) -> tuple[Verdict, Method, float | None]:
    """(verdict, by what, cosine) of two entries that share a key."""
    if _opposed(one, other):  # before all else: "travel limit +" and "travel limit -" are the same words
        return "different", "words", None
    if any(_plain(a) and _plain(a) == _plain(b) for a, b in _same_parts(one, other)):
        return "same", "words", 1.0
    mine, theirs = heads(one), heads(other)
    shared = [(mine[name], theirs[name]) for name in _LANGUAGES if name in mine and name in theirs]
    if any(_share(a.text, b.text) >= SAME_WORDS for a, b in shared):
        return "same", "words", None
    across = [(a, b) for a in mine.values() for b in theirs.values()]
    scores = [found for a, b in shared or across if nearness and (found := nearness.of(a, b))]
    if not scores:
        return "unsure", "no_vectors", None
    score, cosine = max(scores)
    verdict: Verdict = "same" if score >= SAME else "different" if score < DIFFERENT else "unsure"
    return verdict, "vectors", round(cosine, 4)


def _compared(
    store: KnowledgeStore, nearness: Callable[[Sequence[KnowledgeEntry]], Nearness | None], tasks: Sequence[_Task]
) -> Iterator[tuple[Pair, _Task, str]]:
    ids = dict.fromkeys(entry_id for task in tasks for entry_id in (task.entry_id, task.other_id))
    entries = {entry.id: entry for entry in store.entries(ids)}
    near = nearness(list(entries.values()))
    with store.database.reading() as connection:
        for task in tasks:
            if task.entry_id not in entries or task.other_id not in entries:
                continue  # taken out by another process meanwhile
            one, other = entries[task.entry_id], entries[task.other_id]
            texts = _texts_hash(one, other)
            settled = connection.execute(
                "SELECT verdict, by, at FROM comparison WHERE texts = ? AND method = 'person' ORDER BY at DESC",
                (texts,),
            ).fetchone()
            if settled:
                yield Pair(one.id, other.id, settled[0], "person", None, *settled[1:]), task, texts
            else:
                verdict, method, cosine = compare(one, other, near)
                yield Pair(one.id, other.id, verdict, method, cosine), task, texts


def _nearness(store: KnowledgeStore, embedder: Embedder) -> Callable[[Sequence[KnowledgeEntry]], Nearness]:
    """Makes the `Nearness` of some entries from the vectors that are stored; the cohorts are read once."""

    def stored(hashes: Iterable[str]) -> dict[str, Vector]:
        found = store.embeddings(embedder.id, hashes)
        return {name: np.frombuffer(vector, dtype=np.float32) for name, vector in found}

    cohorts: dict[Language, Vector] = {}
    with store.database.reading() as connection:
        for language in _LANGUAGES:
            rows = connection.execute(
                # the order of the joins is given: the other way round takes minutes for 50,000 entries
                "WITH head AS MATERIALIZED (SELECT min(passage.rowid) AS id FROM passage JOIN unit ON unit.id = unit_id"
                " WHERE unit.kind = 'alarm' AND language = ? GROUP BY unit_id)"
                " SELECT DISTINCT passage.hash FROM head CROSS JOIN passage ON passage.rowid = head.id WHERE EXISTS"
                " (SELECT 1 FROM embedding WHERE embedder = ? AND embedding.hash = passage.hash)"
                " ORDER BY passage.hash LIMIT ?",
                (language, embedder.id, COHORT),
            ).fetchall()
            if rows:
                cohorts[language] = np.stack(list(stored(row[0] for row in rows).values()))

    def made(entries: Sequence[KnowledgeEntry]) -> Nearness:
        return Nearness(stored({head.hash for entry in entries for head in heads(entry).values()}), cohorts)

    return made


def _same_parts(one: KnowledgeEntry, other: KnowledgeEntry) -> Iterator[tuple[str, str]]:
    for name in _LANGUAGES:
        yield getattr(one.title, name), getattr(other.title, name)
        yield getattr(one.meaning, name), getattr(other.meaning, name)


def _plain(text: str) -> str:
    return re.sub(r"\W+", "", text.casefold())


def _opposed(one: KnowledgeEntry, other: KnowledgeEntry) -> bool:
    mine, theirs = (f"{entry.title.en}\n{entry.title.zh}" for entry in (one, other))
    for high, low in _OPPOSITES:
        a, b = (bool(high.search(mine)), bool(low.search(mine))), (bool(high.search(theirs)), bool(low.search(theirs)))
        if {a, b} == {(True, False), (False, True)}:
            return True
    return False


def _share(one: str, other: str) -> float:
    """Share of the shorter text's words that the longer one holds; 0 where it has too few to say."""
    few, many = sorted((_words(one), _words(other)), key=len)
    return len(few & many) / len(few) if len(few) >= LEAST_WORDS else 0.0


def _words(text: str) -> frozenset[str]:
    """Latin words and pairs of Chinese characters: the search's own tokens cost a second per thousand entries."""
    found: set[str] = set()
    for run in _RUN.findall(text.casefold()):
        found |= {run} if run[0].isascii() else {run[n : n + 2] for n in range(max(1, len(run) - 1))}
    return frozenset(found - _EMPTY)


def _texts_hash(one: KnowledgeEntry, other: KnowledgeEntry) -> str:
    """Hash over what two entries say, whatever their ids are."""
    said = sorted("\n".join(head.text for head in heads(entry).values()) for entry in (one, other))
    return hashlib.sha256("\0".join(said).encode()).hexdigest()


# ---- looking and settling ----
def pairs_of(store: KnowledgeStore, entry_id: str | None = None) -> tuple[Pair, ...]:
    """Pairs that were compared, of one entry or all, those in dispute first."""
    where = "" if entry_id is None else "WHERE ? IN (dispute.entry_id, dispute.other_id)"
    with store.database.writing() as connection:
        tables(connection)
        rows = connection.execute(
            "SELECT dispute.entry_id, dispute.other_id, dispute.verdict, method, similarity, by, at FROM dispute"  # noqa: S608
            " JOIN comparison ON comparison.entry_id = dispute.entry_id AND comparison.other_id = dispute.other_id"
            f" {where} ORDER BY dispute.verdict <> 'different', dispute.entry_id, dispute.other_id",
            () if entry_id is None else (entry_id,),
        ).fetchall()
    return tuple(Pair(*row) for row in rows)


def settle(store: KnowledgeStore, entry: str, other: str, verdict: Literal["same", "different"], *, by: str) -> Pair:
    """A person says whether two sources say the same of a code. It holds until one of the texts changes.

    Raises:
        CurationError: no such entries, or they share no code.
    """
    store.fill()
    with store.database.reading() as connection:
        ids = sorted((entry_id_of(connection, entry), entry_id_of(connection, other)))
        row = connection.execute(f"{_PAIRS} AND one.entry_id = ? AND other.entry_id = ?", ids).fetchone()
    found = store.entries(ids)
    if row is None or len(found) != 2:
        what = f"{ids[0]} and {ids[1]} are not two sources of one code."
        raise CurationError(what, "see: faultwright knowledge list --disputed")
    pair = Pair(ids[0], ids[1], verdict, "person", None, by, now())
    with store.database.writing(searched=True) as connection:
        tables(connection)
        _put(connection, pair, (row[2], row[3]), _texts_hash(*found))
    return pair
