"""The schema subset: what is refused before it reaches an engine, and what is found in a text afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from models.schema import check_schema, closed, text_violation

DETECTOR: dict[str, Any] = {
    "type": "object",
    "properties": {
        "codes": {"type": "array", "maxItems": 2, "items": {"type": "string", "pattern": "^[A-Z]{2}[0-9]{4}$"}},
        "vendor": {"anyOf": [{"enum": ["fanuc", "siemens"]}, {"type": "null"}]},
        "tried": {"type": ["string", "null"], "minLength": 1, "maxLength": 20},
        "count": {"type": "integer", "minimum": 0, "maximum": 9},
        "sure": {"type": "boolean"},
        "version": {"const": 1},
    },
    "required": ["codes", "vendor"],
}


def test_a_good_schema_passes_and_is_closed() -> None:
    check_schema(DETECTOR)
    assert closed(DETECTOR)["additionalProperties"] is False
    assert "additionalProperties" not in DETECTOR


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"type": "nonsense"}, "type 'nonsense' does not exist; known: object"),
        ({"type": "array", "items": {"enum": ["a"]}, "uniqueItems": True}, "keyword 'uniqueItems' is not supported"),
        ({"type": "array"}, "needs items"),
        ({}, "says nothing"),
        ({"enum": []}, "enum is empty"),
        ({"type": "string", "pattern": "("}, "not a regular expression"),
        ({"type": "object", "properties": {}, "required": ["x"]}, "required 'x'"),
        ({"type": "object", "additionalProperties": True}, "only false"),
        ({"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"type": "no"}}}}}, "schema.a.b"),
        ({"anyOf": [{"type": "string"}, {"type": "no"}]}, r"schema.anyOf\[1\]"),
    ],
)
def test_a_bad_schema_is_refused_with_its_place(schema: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        check_schema(schema)


@pytest.mark.parametrize(
    "text",
    [
        '{"codes":[],"vendor":null}',
        '{"codes":["SV0401","AL0001"],"vendor":"fanuc","tried":null,"count":9,"sure":true,"version":1}',
        '{"codes":[],"vendor":"siemens","tried":"复位","count":3.0}',
    ],
)
def test_good_text(text: str) -> None:
    assert text_violation(text, closed(DETECTOR)) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not JSON"),
        ("[]", "not object"),
        ('{"codes":[]}', "lacks 'vendor'"),
        ('{"codes":[],"vendor":null,"more":1}', "has 'more'"),
        ('{"codes":["SV401"],"vendor":null}', r"codes[0]"),
        ('{"codes":["SV0401","SV0402","SV0403"],"vendor":null}', "has 3 items"),
        ('{"codes":[],"vendor":"acme"}', "fits none of the 2"),
        ('{"codes":[],"vendor":null,"tried":""}', "has 0 characters"),
        ('{"codes":[],"vendor":null,"count":10}', "outside 0 to 9"),
        ('{"codes":[],"vendor":null,"count":true}', "not integer"),
        ('{"codes":[],"vendor":null,"sure":1}', "not boolean"),
        ('{"codes":[],"vendor":null,"version":true}', "not 1"),
        ('{"codes":[7],"vendor":null}', "not string"),
    ],
)
def test_bad_text(text: str, says: str) -> None:
    problem = text_violation(text, closed(DETECTOR))
    assert problem is not None
    assert says in problem
