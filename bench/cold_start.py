"""From the shell to first words and to the whole answer, whole process, against bare Python in the same run.

    python bench/cold_start.py [--quick] [--json]

Uses the data home of the environment (base pulled). The process starts anew every time; files are in the page cache
after a first run that is not counted. Times are medians, in milliseconds of wall time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

SCRIPT = str(Path(sys.executable).parent / "faultwright")
MODEL, RULES = {"FAULTWRIGHT_WRITER_TIMEOUT_S": "120"}, {"FAULTWRIGHT_WRITER": "rules"}
EN, ZH = "FANUC 0i-MF shows SV0401 after releasing the e-stop", "发那科 0i-MF 松开急停后出现 SV0401 报警，怎么办？"
RUNS: dict[str, tuple[list[str], dict[str, str]]] = {
    "python -c pass": ([sys.executable, "-c", "pass"], {}),
    "import langgraph": ([sys.executable, "-c", "import langgraph.graph"], {}),
    "faultwright --help": ([SCRIPT, "--help"], {}),
    "lookup 401": ([SCRIPT, "lookup", "401"], {}),
    "ask, en": ([SCRIPT, "ask", EN], MODEL),
    "ask, zh": ([SCRIPT, "ask", ZH], MODEL),
    "ask, en, rules": ([SCRIPT, "ask", EN], RULES),
    "ask, zh, rules": ([SCRIPT, "ask", ZH], RULES),
}


def timed(command: list[str], env: dict[str, str]) -> tuple[float, float, float]:
    """Milliseconds to the first byte on stdout, to the last one, and to the end of the process."""
    started = time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, **env}
    ) as process:
        assert process.stdout is not None
        os.read(process.stdout.fileno(), 1)
        first = time.perf_counter()
        process.stdout.read()
        whole = time.perf_counter()
    ended = time.perf_counter()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return (first - started) * 1000, (whole - started) * 1000, (ended - started) * 1000


def imports() -> dict[str, list[tuple[str, float]]]:
    """What importing costs in `ask` without a model: own time by package, and the modules with most below them."""
    command = [sys.executable, "-X", "importtime", SCRIPT, "ask", EN]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **RULES})
    packages: Counter[str] = Counter()
    cumulative: Counter[str] = Counter()
    for line in done.stderr.splitlines():
        fields = line.removeprefix("import time:").split("|")
        if line.startswith("import time:") and fields[0].strip().isdigit():
            name = fields[2].strip()
            packages[name.split(".")[0]] += int(fields[0])
            cumulative[name] = max(cumulative[name], int(fields[1]))
    return {
        "own_by_package": [(name, value / 1000) for name, value in packages.most_common(12)],
        "with_all_below": [(name, value / 1000) for name, value in cumulative.most_common(12)],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="3 runs of each instead of 15")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    rounds = 3 if options.quick else 15
    load = os.getloadavg()[0]
    for command, env in RUNS.values():
        timed(command, env)
    samples: dict[str, list[tuple[float, float, float]]] = {name: [] for name in RUNS}
    for _ in range(rounds):  # in turns, so that a busy minute of the machine hits all alike
        for name, (command, env) in RUNS.items():
            samples[name].append(timed(command, env))
    results: dict[str, dict[str, Any]] = {}
    for name, rows in samples.items():
        first, whole, ended = (round(statistics.median(column), 1) for column in zip(*rows, strict=True))
        results[name] = {
            "first_words": first,
            "whole": whole,
            "process": ended,
            "worst": round(max(r[2] for r in rows), 1),
        }
    bare = results["python -c pass"]["process"]
    for row in results.values():
        row["first_words_to_bare_python"] = round(row["first_words"] / bare, 1)
    held = imports()
    if options.json:
        print(json.dumps({"rounds": rounds, "cores": os.cpu_count(), "load": load, "runs": results, "imports": held}))
        return 0
    print(f"median of {rounds} cold processes, ms; {os.cpu_count()} cores, load {load:.1f}, files in the page cache")
    print(f"{'':<20}{'first words':>12}{'whole':>9}{'process':>9}{'worst':>9}{'first / bare python':>21}")
    for name, row in results.items():
        print(
            f"{name:<20}{row['first_words']:>12.0f}{row['whole']:>9.0f}{row['process']:>9.0f}{row['worst']:>9.0f}"
            f"{row['first_words_to_bare_python']:>21.1f}"
        )
    for title, key in (("own import time by package", "own_by_package"), ("modules with all below", "with_all_below")):
        print(f"\n{title} (ask without a model, -X importtime, ms)")
        print("  " + ", ".join(f"{name} {value:.0f}" for name, value in held[key]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
