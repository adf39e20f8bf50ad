"""A photo of an alarm screen as a question: what was read is shown before anything is said about it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from serve.terminal import notice

if TYPE_CHECKING:
    from retrieval.records import Language
    from retrieval.screen_photo import ReadCode
    from serve.runtime import Runtime


def photo_question(
    runtime: Runtime, path: Path, text: str, vendor: str | None, machine: str | None
) -> tuple[str, dict[str, Any]]:
    """(the question that a photo asks, with the person's own words; what was read, for a script).

    The question is empty where no code was settled and the person said nothing.

    Raises:
        RetrievalError: the file is no picture, or the extra `ocr` is missing.
        QuestionError: the vendor is unknown.
    """
    from agents.screening import hostile  # noqa: PLC0415 - other questions need no pictures
    from agents.wording import say  # noqa: PLC0415
    from retrieval.screen_photo import read_screen, screen_question  # noqa: PLC0415
    from retrieval.tokens import has_chinese  # noqa: PLC0415

    vendor_id, family = runtime.machine(vendor, machine)
    reading = read_screen(path, vendor=vendor_id, family=family, known=runtime.store.known_codes)
    language: Language = "zh" if has_chinese(text or "".join(reading.lines)) else "en"
    asked = " ".join(part for part in (screen_question(reading, language), text) if part)
    problems = [getattr(problem, language) or problem.en or problem.zh for problem in reading.problems]
    if hostile("\n".join(reading.lines)):
        problems.append(say("photo_orders", language))
    return asked, {
        "lines": list(reading.lines),
        "codes": [_code(code) for code in reading.codes],
        "problems": problems,
        "question": asked,
    }


def _code(code: ReadCode) -> dict[str, Any]:
    return {
        "read": code.raw,
        "code": code.code,
        "vendor": code.vendor,
        "family": code.family,
        "corrected": code.corrected,
        "alternatives": [str(other) for other in code.alternatives],
        "confidence": round(code.confidence, 3),
    }


def show(read: dict[str, Any]) -> None:
    """What was read, on stdout; what a person has to compare with the screen, in yellow."""
    typer.secho("Read on the screen:", dim=True)
    for line in read["lines"]:
        typer.secho(f"  {line}", dim=True)
    for code in read["codes"]:
        sense = code["code"] or f"one of {', '.join(code['alternatives'])}"
        was = f" (read as {code['read']})" if code["code"] != code["read"] else ""
        typer.echo(f"Code: {sense}{was}")
    for problem in read["problems"]:
        typer.secho(f"  ! {problem}", fg=typer.colors.YELLOW)
    if not read["codes"]:
        notice("no fault code was read on the photo")
    typer.echo("")
