"""Codes read from drawn photos of alarm screens: by plain patterns, by `find_codes`, and by `read_screen`.

Run: python bench/photo_codes.py [--photos 80] [--seed 100] [--json FILE]. Needs the extra `ocr`; Chinese screens are
drawn where a Chinese font is found. The known codes are those of the drawn alarms and their neighbours, so that a
misread digit meets a code that exists: harder than the starter base.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter
from collections.abc import Collection
from pathlib import Path

from evaluation.documents.photos import ALARMS, EFFECTS, alarm_photos, chinese_font_found
from retrieval.codes import find_codes
from retrieval.ocr import read_lines, text_rows
from retrieval.screen_photo import read_screen

PLAIN = re.compile(r"(?<![\w.])(?:[A-Z]{2}\d{4}|[FA]\d{5}|\d{3,5}|\d\.\d{3})(?![\w.])")
WAYS = ("plain", "find_codes", "read_screen")


def neighbours() -> dict[tuple[str, str], set[str]]:
    """Codes of the drawn alarms, and those with the last digit one up and one down."""
    known: dict[tuple[str, str], set[str]] = {}
    for alarm in ALARMS:
        head, last = alarm.code[:-1], int(alarm.code[-1])
        codes = {alarm.code, *(f"{head}{digit}" for digit in (last - 1, last + 1) if 0 <= digit <= 9)}
        known.setdefault((alarm.vendor, alarm.family), set()).update(codes)
    return known


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--photos", type=int, default=80)
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    table = neighbours()

    def known(vendor: str, family: str | None) -> Collection[str]:
        return {code for (v, f), codes in table.items() if v == vendor and family in (None, f) for code in codes}

    right: Counter[tuple[str, str]] = Counter()
    wrong: Counter[tuple[str, str]] = Counter()
    shown: Counter[str] = Counter()
    corrected_right = corrected_wrong = unsettled = unsettled_right = wrong_warned = 0
    seconds = []
    for photo in alarm_photos(args.photos, args.seed):
        truth = {alarm.code for alarm in photo.alarms}
        vendor = photo.alarms[0].vendor
        text = "\n".join(" ".join(line.text for line in row) for row in text_rows(read_lines(photo.image)))
        started = time.perf_counter()
        reading = read_screen(photo.image, vendor=vendor, known=known)
        seconds.append(time.perf_counter() - started)
        given = {
            "plain": set(PLAIN.findall(text)),
            "find_codes": {mention.readings[0].code for mention in find_codes(text, vendor=vendor)},
            "read_screen": {code.code for code in reading.codes if code.code},
        }
        shown[photo.effect] += len(truth)
        for way, codes in given.items():
            right[way, photo.effect] += len(codes & truth)
            wrong[way, photo.effect] += len(codes - truth)
        for code in reading.codes:
            if code.code is None:
                unsettled += 1
                unsettled_right += any(key.code in truth for key in code.alternatives)
            elif code.corrected:
                corrected_right += code.code in truth
                corrected_wrong += code.code not in truth
            if code.code and code.code not in truth:
                warned = any(code.code in problem.en or code.raw in problem.en for problem in reading.problems)
                wrong_warned += warned
                print(f"wrong: {photo.style} {photo.effect}: {code.raw} as {code.code}, warned {warned}")

    total = sum(shown.values())
    chinese = "with" if chinese_font_found() else "without"
    print(f"{args.photos} photos ({chinese} Chinese screens), {total} codes; right / wrong")
    print(f"{'effect':<8} {'codes':>5}  " + "  ".join(f"{way:>14}" for way in WAYS))
    for effect in (*EFFECTS, "all"):
        of = EFFECTS if effect == "all" else (effect,)
        cells = (f"{sum(right[w, e] for e in of):>7} / {sum(wrong[w, e] for e in of):<4}" for w in WAYS)
        print(f"{effect:<8} {sum(shown[e] for e in of):>5}  " + "  ".join(cells))
    print(
        f"corrected: {corrected_right} right, {corrected_wrong} wrong; not settled: {unsettled} "
        f"({unsettled_right} with the right code offered); wrong with a warning: {wrong_warned}"
    )
    seconds.sort()
    print(f"seconds per photo: median {seconds[len(seconds) // 2]:.2f}, slowest {seconds[-1]:.2f}")
    if args.json:
        summary = {
            way: {"right": sum(right[way, e] for e in EFFECTS), "wrong": sum(wrong[way, e] for e in EFFECTS)}
            for way in WAYS
        }
        args.json.write_text(json.dumps({"photos": args.photos, "codes": total, **summary}, indent=1))


if __name__ == "__main__":
    main()
