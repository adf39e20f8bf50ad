"""The subset of JSON Schema that constrained output may use, checked on both sides of the engine.

Why a check of our own: xllamacpp (llguidance) drops a schema that it cannot compile without a word and then writes
free text; `uniqueItems` and a misspelt type were seen to do so. So a schema is checked before it is sent, and what
came back is checked against it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "integer": (int,), "number": (int, float),
    "boolean": (bool,), "null": (type(None),),
}
_KEYWORDS = {
    "type", "enum", "const", "anyOf", "properties", "required", "additionalProperties", "items", "minItems", "maxItems",
    "minLength", "maxLength", "minimum", "maximum", "pattern", "title", "description",
}


def check_schema(schema: Mapping[str, Any], path: str = "schema") -> None:
    """Refuse a schema with anything outside the subset.

    Raises:
        ValueError: an unknown keyword or type, with its path and what would be valid.
    """
    if unknown := sorted(set(schema) - _KEYWORDS):
        raise ValueError(f"{path}: keyword {unknown[0]!r} is not supported; known: {', '.join(sorted(_KEYWORDS))}")
    for name in _types_of(schema):
        if name not in _TYPES:
            raise ValueError(f"{path}: type {name!r} does not exist; known: {', '.join(_TYPES)}")
    if not {"type", "enum", "const", "anyOf"} & set(schema):
        raise ValueError(f"{path}: says nothing of the value; give one of type, enum, const, anyOf")
    if "enum" in schema and not schema["enum"]:
        raise ValueError(f"{path}: enum is empty; give at least one value")
    if "pattern" in schema:
        try:
            re.compile(schema["pattern"])
        except re.error as error:
            raise ValueError(f"{path}: pattern {schema['pattern']!r} is not a regular expression: {error}") from error
    extra = schema.get("additionalProperties", False)
    if extra is not False:
        raise ValueError(f"{path}: additionalProperties is {extra!r}; only false is supported")
    properties = schema.get("properties", {})
    if missing := [name for name in schema.get("required", ()) if name not in properties]:
        raise ValueError(f"{path}: required {missing[0]!r} is not among the properties {sorted(properties)}")
    for name, inner in properties.items():
        check_schema(inner, f"{path}.{name}")
    if "array" in _types_of(schema):
        if "items" not in schema:
            raise ValueError(f"{path}: an array needs items")
        check_schema(schema["items"], f"{path}[]")
    for index, inner in enumerate(schema.get("anyOf", ())):
        check_schema(inner, f"{path}.anyOf[{index}]")


def closed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with every object closed: by default JSON Schema lets a model add keys of its own."""
    out: dict[str, Any] = dict(schema)
    if "object" in _types_of(schema):
        out["additionalProperties"] = False
        out["properties"] = {name: closed(inner) for name, inner in schema.get("properties", {}).items()}
    if "items" in schema:
        out["items"] = closed(schema["items"])
    if "anyOf" in schema:
        out["anyOf"] = [closed(inner) for inner in schema["anyOf"]]
    return out


def text_violation(text: str, schema: Mapping[str, Any]) -> str | None:
    """Why a text is not JSON of that schema, or None where it is."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        return f"not JSON: {error}"
    return violation(value, schema)


def violation(value: Any, schema: Mapping[str, Any], path: str = "value") -> str | None:
    """The first place where a value breaks a checked schema, or None."""
    types = _types_of(schema)
    if types and not any(_is(value, name) for name in types):
        return f"{path} is {_short(value)}, not {' or '.join(types)}"
    if "enum" in schema and not any(_same(value, allowed) for allowed in schema["enum"]):
        return f"{path} is {_short(value)}, not one of {_short(schema['enum'])}"
    if "const" in schema and not _same(value, schema["const"]):
        return f"{path} is {_short(value)}, not {_short(schema['const'])}"
    if "anyOf" in schema and all(violation(value, inner, path) for inner in schema["anyOf"]):
        return f"{path} is {_short(value)}, which fits none of the {len(schema['anyOf'])} alternatives"
    if isinstance(value, str):
        return _string_violation(value, schema, path)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if value < schema.get("minimum", value) or value > schema.get("maximum", value):
            return f"{path} is {value}, outside {schema.get('minimum', '-inf')} to {schema.get('maximum', 'inf')}"
    if isinstance(value, list):
        return _array_violation(value, schema, path)
    if isinstance(value, dict) and "object" in types:
        return _object_violation(value, schema, path)
    return None


def _string_violation(value: str, schema: Mapping[str, Any], path: str) -> str | None:
    if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
        least, most = schema.get("minLength", 0), schema.get("maxLength", "any")
        return f"{path} has {len(value)} characters, outside {least} to {most}"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        return f"{path} is {_short(value)}, which does not match {schema['pattern']!r}"
    return None


def _array_violation(value: list[Any], schema: Mapping[str, Any], path: str) -> str | None:
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        return f"{path} has {len(value)} items, outside {schema.get('minItems', 0)} to {schema.get('maxItems', 'any')}"
    found = (violation(item, schema["items"], f"{path}[{i}]") for i, item in enumerate(value) if "items" in schema)
    return next((problem for problem in found if problem), None)


def _object_violation(value: dict[str, Any], schema: Mapping[str, Any], path: str) -> str | None:
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            return f"{path} lacks {name!r}"
    for name, inner in value.items():
        if name not in properties:
            return f"{path} has {name!r}, which is not one of {sorted(properties)}"
        if problem := violation(inner, properties[name], f"{path}.{name}"):
            return problem
    return None


def _types_of(schema: Mapping[str, Any]) -> tuple[str, ...]:
    given = schema.get("type", ())
    return (given,) if isinstance(given, str) else tuple(given)


def _is(value: Any, name: str) -> bool:
    if isinstance(value, bool):  # a bool is an int in Python, not in JSON
        return name == "boolean"
    return isinstance(value, _TYPES[name]) or (name == "integer" and isinstance(value, float) and value.is_integer())


def _same(a: Any, b: Any) -> bool:
    return bool(a == b) and isinstance(a, bool) == isinstance(b, bool)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + "..."
