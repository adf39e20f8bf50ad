"""Two sources of one code: which pairs are compared, what is decided, what a person settles, what an answer shows."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest

from agents.wording import both
from retrieval.base import starter_folder
from retrieval.curation import assign, verify
from retrieval.disputes import Nearness, Pair, compare, find_disputes, heads, pairs_of, settle
from retrieval.documents import Documents, StoredDocument, now
from retrieval.embed import HashingEmbedder
from retrieval.notes import Place, add_note
from retrieval.records import Answer, Bilingual, KnowledgeEntry
from retrieval.search import Searcher
from retrieval.store import KnowledgeStore
from retrieval.versions import CurationError
from serve.runtime import Runtime
from serve.settings import Settings

OURS = "fanuc/sv0410"
EMBEDDER = HashingEmbedder()


def row(number: str, title: str, code: str = "SV0410", meaning: str = "") -> KnowledgeEntry:
    language = "zh" if any("\u3400" <= c <= "\u9fff" for c in title) else "en"
    return KnowledgeEntry.model_validate(
        {
            "id": f"doc-{number}/{code.lower()}",
            "kind": "alarm",
            "vendor": "fanuc",
            "keys": [{"family": "30i", "code": code}],
            "title": {language: title},
            "meaning": {language: meaning or title},
            "items": [{"id": "c1", "kind": "cause", "text": {language: title}, "sources": ["doc"]}],
            "sources": [
                {"id": "doc", "title": "alarms.csv", "address": "alarms.csv", "place": "row 3"}
                | {"publisher": "the shop's own document", "read_on": "2026-12-01"}
            ],
        }
    )


def put(store: KnowledgeStore, number: str, *rows: KnowledgeEntry, series: str = "") -> None:
    name = f"{series or number}.csv"
    document = StoredDocument(
        number, name, f"/shop/{number}.csv", series or number, "", number, "csv", "fanuc", "30i", name, None, now(), True
    )  # fmt: skip
    Documents(store.database).put(document, rows, [])


def embed(store: KnowledgeStore) -> None:
    store.fill()
    texts = store.to_embed(EMBEDDER.id, 100_000)
    vectors = EMBEDDER.passages(list(texts.values()))
    store.put_embeddings(EMBEDDER.id, {name: v.tobytes() for name, v in zip(texts, vectors, strict=True)})


def verdicts(store: KnowledgeStore) -> dict[str, str]:
    return {f"{pair.entry_id} {pair.other_id}": pair.verdict for pair in pairs_of(store)}


class TestPairs:
    def test_a_new_source_of_a_code_is_compared_once(self, store: KnowledgeStore) -> None:
        put(store, "aaaa", row("aaaa", "Coolant tank is empty, fill it up"), row("aaaa", "Nothing else", "SV9990"))
        embed(store)
        found = find_disputes(store, EMBEDDER)
        assert (found.checked, found.second_look) == (1, 0)
        assert set(verdicts(store)) == {f"doc-aaaa/sv0410 {OURS}"}
        assert find_disputes(store, EMBEDDER).checked == 0

    def test_versions_of_one_document_are_one_source(self, store: KnowledgeStore) -> None:
        put(store, "aaaa", row("aaaa", "Axis one overheats", "SV9991"), series="x")
        put(store, "bbbb", row("bbbb", "Tool magazine lost its place", "SV9991"), series="x")
        assert find_disputes(store, None).checked == 0

    def test_two_documents_are_two(self, store: KnowledgeStore) -> None:
        put(store, "aaaa", row("aaaa", "DC link voltage too high", "SV9991"))
        put(store, "bbbb", row("bbbb", "DC link voltage too low", "SV9991"))
        found = find_disputes(store, None)
        assert found.new == (("doc-aaaa/sv9991", "doc-bbbb/sv9991"),)
        assert {store.entry(i).status for i in found.new[0]} == {"disputed"}  # type: ignore[union-attr]
        document = Documents(store.database).find("bbbb")
        Documents(store.database).remove(document)
        assert find_disputes(store, None).checked == 0
        assert verdicts(store) == {} and store.entry("doc-aaaa/sv9991").status == "unverified"  # type: ignore[union-attr]

    def test_without_vectors_a_pair_waits_for_a_second_look(self, store: KnowledgeStore) -> None:
        put(store, "aaaa", row("aaaa", "Coolant tank is empty, fill it up"))
        assert (find_disputes(store, EMBEDDER).second_look, verdicts(store)) == (
            1,
            {f"doc-aaaa/sv0410 {OURS}": "unsure"},
        )
        again = find_disputes(store, None)
        assert (again.checked, again.second_look) == (0, 1)
        embed(store)
        assert find_disputes(store, EMBEDDER).checked == 1
        assert pairs_of(store)[0].method == "vectors"

    def test_a_changed_text_is_looked_at_again(self, store: KnowledgeStore) -> None:
        put(store, "aaaa", row("aaaa", "Voltage too high", "SV9991"))
        put(store, "bbbb", row("bbbb", "Voltage too low", "SV9991"))
        assert len(find_disputes(store, None).new) == 1
        assign(store, "doc-bbbb/sv9991", ["title.en=Voltage too high", "meaning.en=Voltage too high"], by="Li")
        assert find_disputes(store, None).gone == (("doc-aaaa/sv9991", "doc-bbbb/sv9991"),)


class TestVerdicts:
    @pytest.mark.parametrize(
        ("one", "other", "verdict"),
        [
            ("Servo ready signal off", "SERVO READY SIGNAL, OFF!", "same"),
            ("伺服准备就绪信号断开", "伺服准备就绪信号断开。", "same"),
            ("Overvoltage in the DC link", "Undervoltage in the DC link", "different"),
            ("DC link voltage too high", "直流母线电压过低", "different"),
            ("Over-travel + (hard)", "Over-travel - (hard)", "different"),
            ("X axis, positive direction", "X 轴负方向", "different"),
            ("The pressure of the air supply is low", "Air supply pressure low", "same"),
            ("Axis stopped", "Fan of amplifier", "unsure"),
        ],
    )
    def test_words(self, one: str, other: str, verdict: str) -> None:
        assert compare(row("aaaa", one), row("bbbb", other), None)[0] == verdict
        assert compare(row("bbbb", other), row("aaaa", one), None)[0] == verdict

    def test_nearness_by_hand(self) -> None:
        """Both sides' crowds: mean 0, spread 0.5; the cosine of 1 stands out by two of them."""
        crowd = np.array([[0.5, 0], [-0.5, 0]] * 50, dtype=np.float32)
        one, other = (heads(row(number, title))["en"] for number, title in (("aaaa", "x y"), ("bbbb", "x z")))
        vectors = {head.hash: np.array([1, 0], dtype=np.float32) for head in (one, other)}
        score, cosine = Nearness(vectors, {"en": crowd}).of(one, other) or (0, 0)
        trimmed = np.sort(crowd @ vectors[one.hash])[:98]
        assert score == pytest.approx((1 - trimmed.mean()) / trimmed.std()) and cosine == 1
        assert Nearness({}, {"en": crowd}).of(one, other) is None
        assert Nearness(vectors, {"en": crowd[:49]}).of(one, other) is None


class TestSettling:
    def test_a_person_has_the_last_word_until_a_text_changes(self, store: KnowledgeStore) -> None:
        put(store, "aaaa", row("aaaa", "Voltage too high", "SV9991"))
        put(store, "bbbb", row("bbbb", "Voltage too low", "SV9991"))
        find_disputes(store, None)
        settle(store, "doc-bbbb/sv9991", "doc-aaaa/sv9991", "same", by="Li Wei")
        assert find_disputes(store, None).checked == 0
        assert store.entry("doc-aaaa/sv9991").status == "unverified"  # type: ignore[union-attr]
        (pair,) = pairs_of(store, "doc-aaaa/sv9991")
        assert (pair.verdict, pair.method, pair.by) == ("same", "person", "Li Wei")
        assign(store, "doc-bbbb/sv9991", ["title.en=Voltage much too low"], by="Li")
        assert len(find_disputes(store, None).new) == 1

    def test_it_holds_for_the_same_texts_in_the_next_document(self, store: KnowledgeStore) -> None:
        put(store, "aaaa", row("aaaa", "Voltage too high", "SV9991"))
        put(store, "bbbb", row("bbbb", "Voltage too low", "SV9991"), series="x")
        settle(store, "doc-aaaa/sv9991", "doc-bbbb/sv9991", "same", by="Li Wei")
        put(store, "cccc", row("cccc", "Voltage too low", "SV9991"), series="x")
        assert find_disputes(store, None).new == ()
        assert pairs_of(store) == (
            Pair("doc-aaaa/sv9991", "doc-cccc/sv9991", "same", "person", None, "Li Wei", pairs_of(store)[0].at),
        )

    def test_only_two_sources_of_one_code_can_be_settled(self, store: KnowledgeStore) -> None:
        with pytest.raises(CurationError, match="not two sources of one code"):
            settle(store, OURS, "fanuc/sv0401", "same", by="Li")
        with pytest.raises(CurationError, match="No entry"):
            settle(store, OURS, "nobody", "same", by="Li")


class TestAnswers:
    @pytest.fixture
    def ask(self, home: Path, store: KnowledgeStore) -> Callable[..., Answer]:
        put(store, "aaaa", row("aaaa", "Coolant pressure too low", meaning="The coolant pump does not deliver."))
        settle(store, OURS, "doc-aaaa/sv0410", "different", by="Li Wei")
        runtime = Runtime(Settings(home=home, writer="rules"), embedder=EMBEDDER)
        return lambda text, **options: Answer.model_validate(runtime.answer(text, **options)["answer"])

    @pytest.mark.parametrize(("question", "n"), [("FANUC 30i SV0410", 0), ("发那科 30i SV0410 报警", 1)])
    def test_both_sources_are_shown_and_that_they_differ(
        self, ask: Callable[..., Answer], question: str, n: int
    ) -> None:
        answer = ask(question)
        assert both("disputed")[n] in answer.text and both("sources_differ")[n] in answer.text
        assert "The coolant pump does not deliver." in answer.text
        assert [c.entry_id for c in answer.citations] == [OURS, "doc-aaaa/sv0410"]
        assert {c.status for c in answer.citations} == {"disputed"}

    def test_also_where_a_person_verified_one(self, ask: Callable[..., Answer], store: KnowledgeStore) -> None:
        verify(store, OURS, by="Li Wei")
        text = ask("FANUC 30i SV0410").text
        assert both("sources_differ")[0] in text and "verified by Li Wei" in text

    @pytest.mark.parametrize(("question", "n"), [("FANUC 30i SV0410", 0), ("发那科 30i SV0410 报警", 1)])
    def test_notes_are_the_shops_own_and_come_after_safety(
        self, ask: Callable[..., Answer], store: KnowledgeStore, question: str, n: int
    ) -> None:
        entry = store.entry(OURS)
        assert entry is not None
        first, last = entry.of_kind("cause")[0], entry.of_kind("cause")[-1]
        add_note(store, OURS, "Call Wang first", by="Li Wei")
        add_note(store, OURS, "Seen in May", by="Bob", machine="lathe 3", place=Place(move=last.id, before=first.id))
        plain, answer = ask(question), ask(question, machine="Lathe 3")
        assert "Seen in May" not in plain.text and "Call Wang first" in plain.text
        marks = [s.name for s in answer.sections]
        assert marks[: marks.index("shop_notes")] == ["stop_or_run", "safety", "symptom"]
        (diagnosis,) = (s for s in answer.sections if s.name == "diagnosis")
        assert diagnosis.items[0].item_id == last.id
        assert diagnosis.items[1].item_id.startswith("@note:") and "Seen in May" in diagnosis.items[1].text
        day = now()[:10]
        assert both("shop_note")[n].format(by="Li Wei", on=day, text="Call Wang first") in answer.text
        assert (
            both("shop_note_machine")[n].format(machine="lathe 3", by="Bob", on=day, text="Seen in May") in answer.text
        )
        assert answer.grounded == plain.grounded
        assert not any(i.startswith("@note") for c in answer.citations for i in c.item_ids)
        assert answer.safety == plain.safety

    def test_the_machine_is_remembered_and_a_hostile_note_is_not_shown(
        self, home: Path, ask: Callable[..., Answer], store: KnowledgeStore
    ) -> None:
        add_note(store, OURS, "Seen in May", by="Bob", machine="lathe 3", place=Place(after="k1"))
        add_note(store, OURS, "Jumper the door switch", by="Eve")  # as a base from elsewhere might hold it
        runtime = Runtime(Settings(home=home, writer="rules"), embedder=EMBEDDER)
        first = runtime.answer("FANUC 30i SV0410", machine="lathe 3")
        assert "Seen in May" in first["answer"]["text"] and "Jumper" not in first["answer"]["text"]
        from agents.state import Conversation

        talk = Conversation.model_validate(first["conversation"])
        then = runtime.answer("checked, still there", conversation=talk)
        assert "Seen in May" in then["answer"]["text"]
        given = [i for topic in then["conversation"]["topics"] for i in topic["given"]]
        assert given and not any(i.startswith("@note") for i in given)


# ---- how far the comparison can be trusted ----
def variants(entry: KnowledgeEntry) -> dict[str, KnowledgeEntry]:
    """An entry as another source might word it: title alone, meaning alone, a technician's phrase, one language."""
    made: dict[str, KnowledgeEntry] = {}
    for language in ("en", "zh"):
        title, meaning = getattr(entry.title, language), getattr(entry.meaning, language)
        phrases = entry.phrases.get(language, ())
        texts = {"title": (title, title), "meaning": (meaning, meaning), "full": (title, meaning)}
        texts |= {"phrase": (phrases[0], ". ".join(phrases[:2]))} if phrases else {}
        for name, (first, second) in texts.items():
            fields = {"title": Bilingual(**{language: first}), "meaning": Bilingual(**{language: second})}
            made[f"{language} {name}"] = entry.model_copy(update=fields)
    return made


WORDINGS = [
    ("en title", "en full"), ("zh title", "zh full"), ("en title", "en meaning"), ("zh title", "zh meaning"),
    ("en phrase", "en full"), ("zh phrase", "zh full"), ("en full", "zh full"), ("zh title", "en full"),
    ("en title", "zh full"),
]  # fmt: skip


def share(verdicts: Iterable[str], wanted: str) -> float:
    found = list(verdicts)
    return found.count(wanted) / len(found)


@pytest.mark.integration
def test_precision_and_recall_on_pairs_of_the_starter_base(real_searcher: Searcher) -> None:
    """Same code in two wordings or languages = same; another code of the same vendor = different. 60 alarms."""
    store, embedder = real_searcher.store, real_searcher.embedder
    alarms = [e for e in store.entries() if e.kind == "alarm" and e.vendor in ("fanuc", "siemens", "haas")]
    rng = random.Random(20261201)
    chosen = rng.sample(alarms, 60)
    reworded = {entry.id: variants(entry) for entry in chosen}
    texts = {h.hash: h.text for made in reworded.values() for e in made.values() for h in heads(e).values()}
    vectors = dict(zip(texts, embedder.passages(list(texts.values())), strict=True))
    with_vectors = dict(store.embeddings(embedder.id, {h.hash for e in alarms for h in heads(e).values()}))
    cohorts = {
        language: np.stack([np.frombuffer(with_vectors[heads(e)[language].hash], dtype=np.float32) for e in alarms])
        for language in ("en", "zh")
    }
    nearness = Nearness(vectors, cohorts)  # type: ignore[arg-type]
    same, other = [], []
    for entry in chosen:
        for one, two in WORDINGS:
            if one in reworded[entry.id] and two in reworded[entry.id]:
                same.append(compare(reworded[entry.id][one], reworded[entry.id][two], nearness)[0])
            foe = rng.choice([e for e in chosen if e.vendor == entry.vendor and e is not entry])
            if one in reworded[entry.id] and two in reworded[foe.id]:
                other.append(compare(reworded[entry.id][one], reworded[foe.id][two], nearness)[0])
    false, recall = share(same, "different"), share(other, "different")
    print(f"{len(same)} same, {len(other)} different pairs: falsely in dispute {false:.3f}, found {recall:.3f}")
    print(
        f"precision {recall / (recall + false):.3f}; called same: right {share(same, 'same'):.3f}, wrong {share(other, 'same'):.3f}"
    )
    assert false <= 0.06
    assert recall >= 0.5
    assert recall / (recall + false) >= 0.9
    assert share(other, "same") <= 0.03 and share(same, "same") >= 0.3


def test_a_base_of_its_own_is_compared_in_one_go(home: Path) -> None:
    """Two thousand codes in two documents: found with one join, compared in batches."""
    store = KnowledgeStore(home)
    store.sync(starter_folder())
    for number, word in (("aaaa", "high"), ("bbbb", "low")):
        put(store, number, *[row(number, f"Voltage too {word}", f"SV{n}") for n in range(3000, 4000)])
    found = find_disputes(store, None)
    assert (found.checked, len(found.new)) == (1000, 1000)
