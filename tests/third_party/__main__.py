# SPDX-License-Identifier: Apache-2.0
"""Run programs and suites of others with weir, compare, and write docs/validation.

    .venv/bin/python tests/third_party [--suite NAME]... [--mode NAME]... [--table]

Results are kept in build/third_party/results; what is there and was made with the same library is
not run again.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

from harness.compare import find_differences, read_known, read_open, unstable_items
from harness.download import debian_packages_missing, prepare_python
from harness.model import ROOT, Mode, Place, Result, Suite, load_result, read_modes
from harness.run import library_digest, run_suite
from harness.table import make_row, write_page
from suites import all_suites

BUILD = ROOT / "build" / "third_party"
RESULTS = BUILD / "results"
PAGE = ROOT / "docs" / "validation" / "README.md"


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="third-party", description=__doc__.split("\n")[0])
    parser.add_argument("--suite", action="append", metavar="NAME", help="only these; a pattern")
    parser.add_argument("--mode", action="append", metavar="NAME", help="only these; a pattern")
    parser.add_argument("--sources", type=Path, help="directory with the built trees of suites")
    parser.add_argument("--time-limit", type=float, default=1.0, help="factor on all time limits")
    parser.add_argument("--rerun", action="store_true", help="run also what has a result")
    parser.add_argument("--install", action="store_true", help="install missing Debian packages")
    parser.add_argument("--table", action="store_true", help="write the page from saved results")
    parser.add_argument("--page", type=Path, default=PAGE, metavar="FILE",
        help="with --table: the page, of the suites and modes named by --suite and --mode alone")
    parser.add_argument("--list", action="store_true", help="print the suites and the modes")
    return parser.parse_args()


def chosen(name: str, patterns: list[str] | None) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def place_of(suite: Suite, mode: Mode, sources: Path | None) -> Place:
    tree = (sources / suite.tree).resolve() if sources and suite.tree else None
    work = BUILD / "run" / f"{suite.name}.{mode.name}" / "work"
    python = BUILD / "venv" / "bin" / "python"
    downloads = BUILD / "sdists"
    return Place(work, tree if tree and tree.is_dir() else None, python, downloads)


def is_current(saved: Result | None, mode: Mode) -> bool:
    if saved is None or saved.missing:
        return False
    return not mode.uses_weir or saved.library == library_digest()


def report(result: Result, modes: list[Mode]) -> int:
    """Print one line for a run and one for each difference; their number without a known cause."""
    plain_modes = [m.name for m in modes if not m.uses_weir]
    plains = [r for m in plain_modes if (r := load_result(RESULTS, result.suite, m))]
    line = f"{result.suite:12} {result.mode:12}"
    if result.missing:
        print(f"{line} not run: {result.missing}", flush=True)
        return 0
    found = []
    if plains and result.mode not in plain_modes:
        found = find_differences(plains[0], unstable_items(plains), result, read_known())
    print(f"{line} {result.passes()} pass, {len(found)} differences, {result.seconds():.0f} s")
    for d in found:
        print(f"    {d.item}: {d.plain} -> {d.found} {d.cause and '(known)'}", flush=True)
    sys.stdout.flush()
    return sum(not d.cause for d in found)


def run_all(suites: list[Suite], modes: list[Mode], wanted: argparse.Namespace) -> int:
    unknown = 0
    for suite in suites:
        problem = prepare_python(suite, BUILD)
        for mode in (m for m in modes if chosen(m.name, wanted.mode)):
            if any(fnmatchcase(mode.name, pattern) for pattern in suite.leave_out):
                continue
            result = load_result(RESULTS, suite.name, mode.name)
            if wanted.rerun or not is_current(result, mode):
                place = place_of(suite, mode, wanted.sources)
                if problem:
                    result = Result(suite.name, mode.name, missing=problem)
                else:
                    place.work.parent.mkdir(parents=True, exist_ok=True)
                    result = run_suite(suite, mode, place, wanted.time_limit)
                result.save(RESULTS)
            unknown += report(result, modes)
            if result.missing:
                break
    return unknown


def table(suites: list[Suite], modes: list[Mode], page: Path = PAGE) -> None:
    known = read_known()
    rows = []
    for suite in suites:
        loaded = {m.name: load_result(RESULTS, suite.name, m.name) for m in modes}
        rows.append(make_row(suite, {k: r for k, r in loaded.items() if r}, modes, known))
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(write_page(rows, modes, read_open()))
    print(f"wrote {page}")


def main() -> int:
    wanted = options()
    modes = read_modes()
    every = all_suites()
    suites = [suite for suite in every if chosen(suite.name, wanted.suite)]
    if wanted.list:
        for suite in suites:
            print(f"{suite.name:12} {suite.title}")
        print("modes:", " ".join(mode.name for mode in modes))
        return 0
    if wanted.table:
        table(suites if wanted.page != PAGE else every,
            [m for m in modes if wanted.page == PAGE or chosen(m.name, wanted.mode)], wanted.page)
        return 0
    if wanted.sources is None and os.environ.get("WEIR_THIRD_PARTY_SOURCES"):
        wanted.sources = Path(os.environ["WEIR_THIRD_PARTY_SOURCES"])
    if lacking := debian_packages_missing(suites):
        command = ["apt-get", "install", "-y", "--no-install-recommends", *lacking]
        if wanted.install:
            subprocess.run(command, check=True)
        else:
            print("missing packages; suites that need them are not run:", " ".join(lacking))
    unknown = run_all(suites, modes, wanted)
    if wanted.suite or wanted.mode:
        print(f"{PAGE.relative_to(ROOT)} is left as it is; --table writes it from all saved "
              f"results")
    else:
        table(every, modes)
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
