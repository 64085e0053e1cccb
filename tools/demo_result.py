# SPDX-License-Identifier: Apache-2.0
"""The last screen of the demo: python tools/demo_result.py RUN TUNED PLAIN-DIR TUNED-DIR WORK.

Seconds of both runs beside what was expected, requests that reached the file system
(WORK/plain.json and tuned.json, where it counts them), and whether the outputs are the same. Exit
status 1 where one is not."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from weir.advise.advise import advise
from weir.advise.frame.facts import Facts
from weir.advise.probes import probes
from weir.advise.text import change_text, range_text
from weir.report import build
from weir.report.frame.amounts import number, plain, seconds
from weir.tune.outputs import Output, differences, outputs_of

# requests that a process waits for, as weir testfs counts them
_LEFT_OUT = ("release", "releasedir", "forget", "batch_forget", "interrupt")


def main() -> int:
    run, tuned, before, after, work = map(Path, sys.argv[1:])
    facts = [Facts(build(str(one)), probes()) for one in (run, tuned)]
    report = advise(facts[0])
    print(f"{'':32}{'plain':>10}{'with rules':>12}")
    rows = [("wall time", [one.wall_s for one in facts]),
        ("I/O that delays the run", [_critical_s(one) for one in facts]),
        ("I/O of all ranks", [one.report.all.seconds for one in facts])]
    for words, (a, b) in rows:
        print(plain(f"{words:<32}{seconds(a):>10}{seconds(b):>12}"))
    counts = [_requests(work / f"{name}.json") for name in ("plain", "tuned")]
    if None not in counts:
        print(f"{'requests to the file system':<32}{number(counts[0]):>10}{number(counts[1]):>12}")
    saved = [_critical_s(facts[0]) - _critical_s(facts[1]), facts[0].wall_s - facts[1].wall_s]
    print(plain(f"Expected: the run is shorter by {range_text(report.expected)}. Obtained: "
        f"it is {change_text(saved[1])}; the I/O that delays it is {change_text(saved[0])}."))
    archives = {one.rule.stack.partition("name=")[2].partition(":")[0] for one in report.rules
        if one.rule is not None and one.rule.stack.startswith("pack:")}
    return _outputs(outputs_of(before, {}), outputs_of(after, {}, archives))


def _critical_s(facts: Facts) -> float:
    return sum(one.critical_ns or 0 for one in facts.files.values()) / 1e9


def _requests(path: Path) -> int | None:
    """Of both kinds of testfs's counters; None where the directory is a plain one."""
    if not path.exists():
        return None
    found = json.loads(path.read_text())["requests"]
    return sum(count for name, count in found.items() if name not in _LEFT_OUT)


def _outputs(before: Mapping[str, Output], after: Mapping[str, Output]) -> int:
    """Logs have times in them: these are compared with their numbers left out."""
    found = differences([before], after)
    logs = [one for one in found if one.path in before and one.path in after
        and (before[one.path].content or "").startswith("text ")
        and before[one.path].content == after[one.path].content]
    for one in found:
        if one not in logs:
            print(f"{one.path}: {one.why}")
    print(f"Outputs: {len(before) - len(found)} of {len(before)} files and links are identical, "
        f"byte for byte; {len(logs)} logs differ only in the times in them "
        f"({', '.join(one.path for one in logs[:3])}, ...).")
    return 1 if len(found) > len(logs) else 0


if __name__ == "__main__":
    sys.exit(main())
