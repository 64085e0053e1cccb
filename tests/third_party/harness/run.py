# SPDX-License-Identifier: Apache-2.0
"""Runs one suite in one mode, in a directory of its own, and collects what is compared."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import time
from pathlib import Path

from harness.model import ROOT, Mode, Place, Result, Step, StepResult, Suite
from harness.process import base_environment, run_limited, weir_environment

WEIR = ROOT / ".venv" / "bin" / "weir"
LIBRARY = ROOT / "python" / "weir" / "_lib" / "libweir-preload.so"
# weir report: everything well; the same, with I/O that was not seen.
_REPORT_STATUS = (0, 4)
_REPORT_LIMIT_S = 300


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def library_digest() -> str:
    return digest(LIBRARY.read_bytes())


def weir_version() -> str:
    """The last commit that changed the source of the library, with "+" if it was changed since."""
    git, source = ["git", "-C", str(ROOT)], ["--", "native", "include"]
    last = subprocess.run([*git, "log", "-1", "--format=%h", *source], capture_output=True,
        text=True, check=False)
    changed = subprocess.run([*git, "diff", "--quiet", "HEAD", *source],
        check=False).returncode == 1
    return (last.stdout.strip() or "of unknown version") + "+" * changed


def _without_directory(output: str, work: Path) -> bytes:
    return output.replace(str(work), "WORK").encode()


def digest_files(directory: Path, patterns: tuple[str, ...]) -> dict[str, str]:
    """The digests of the files below a directory that the patterns match."""
    found = {p for pattern in patterns for p in directory.glob(pattern) if p.is_file()}
    return {str(p.relative_to(directory)): digest(p.read_bytes()) for p in sorted(found)}


def missing_parts(suite: Suite, place: Place) -> str:
    """Why the suite cannot run here; "" if it can."""
    if suite.tree and place.tree is None:
        return f"WEIR_THIRD_PARTY_SOURCES holds no {suite.tree}"
    for name in suite.needs:
        inside = place.tree is not None and (place.tree / name).exists()
        if not inside and not Path(name).exists() and shutil.which(name) is None:
            return f"there is no {name}"
    return ""


def mode_environment(mode: Mode, work: Path) -> dict[str, str]:
    """What `weir env` sets for a mode; the trace and the rules lie beside the directory of the run.
    """
    options = []
    if mode.stack:
        rules = work.with_suffix(".rules")
        tier = work.with_suffix(".tier")
        remove_tree(tier)
        stack = mode.stack.format(tier=tier)
        rules.write_text(f'[[rule]]\npath = "*"\nstack = "{stack}"\n')
        options += ["--rules", str(rules)]
    if mode.level:
        trace = work.with_suffix(".trace")
        shutil.rmtree(trace, ignore_errors=True)
        options += ["--quiet", "--level", mode.level, "--output", str(trace)]
    elif mode.stack:
        options += ["--no-trace"]
    return weir_environment(options, WEIR, work) if options else {}


def run_step(step: Step, environment: dict[str, str], place: Place, factor: float) -> StepResult:
    began = time.monotonic()
    limit_s = step.time_limit_s * factor
    ended = run_limited(step.command, environment | step.env, place.work, limit_s)
    seconds = round(time.monotonic() - began, 1)
    log = place.work.with_suffix(".log")
    with log.open("a") as file:
        file.write(f"==== {step.name}: {ended.status}, {seconds} s\n{ended.output}\n")
    output = ""
    if step.compare_output:
        output = digest(_without_directory(ended.output, place.work))
    return StepResult(ended.status, step.parse(ended), output, seconds)


def read_trace(work: Path) -> StepResult:
    """The trace of a run as one more step: weir report must be able to read it."""
    trace = work.with_suffix(".trace")
    began = time.monotonic()
    command = [str(WEIR), "report", str(trace), "--json"]
    ended = run_limited(command, base_environment(), work, _REPORT_LIMIT_S)
    if ended.status not in _REPORT_STATUS:
        text = ended.output[-4000:]
        with work.with_suffix(".log").open("a") as file:
            file.write(f"==== weir report: {ended.status}\n{text}\n")
    shutil.rmtree(trace, ignore_errors=True)
    status = 0 if ended.status in _REPORT_STATUS else ended.status
    return StepResult(status, {}, "", round(time.monotonic() - began, 1))


def bring_files(mode: Mode, work: Path) -> StepResult:
    """Files that the layer has elsewhere, to where they belong; all of them must get there."""
    archives: list[Path] = []
    commands = []
    if mode.stack.startswith("pack:"):
        archives = sorted(work.rglob("weir-packed*.zip"))
        commands = [["pack", "extract", str(archive)] for archive in archives]
    elif mode.stack.startswith("stage:"):
        commands = [["stage", "recover", str(work.with_suffix(".tier"))]]
    status: int | str = 0
    for command in commands:
        ended = run_limited([str(WEIR), *command], base_environment(), work, _REPORT_LIMIT_S)
        if ended.status != 0:
            status = ended.status
            with work.with_suffix(".log").open("a") as file:
                file.write(f"==== weir {' '.join(command)}: {status}\n{ended.output[-4000:]}\n")
    for archive in archives:
        archive.unlink()
    return StepResult(status, {})


def run_suite(suite: Suite, mode: Mode, place: Place, factor: float = 1.0) -> Result:
    """Run all steps; the directory is made anew and removed, the log stays beside it."""
    result = Result(suite.name, mode.name, missing=missing_parts(suite, place))
    if result.missing:
        return result
    result.version = suite.version(place)
    result.library = library_digest() if mode.uses_weir else ""
    result.weir = weir_version() if mode.uses_weir else ""
    remove_tree(place.work)
    place.work.mkdir(parents=True)
    place.work.with_suffix(".log").unlink(missing_ok=True)
    weir = mode_environment(mode, place.work)
    for step in suite.steps(place):
        environment = base_environment() | ({} if step.prepare else weir)
        done = run_step(step, environment, place, factor)
        if not step.prepare:
            result.steps[step.name] = done
        elif done.status != 0:
            result.missing = f"{step.name} ends with {done.status}; see {place.work.name}.log"
            return result
    if not mode.uses_weir and not result.passes():
        # every mode would be equal to it, whatever weir does
        result.missing = f"no test passes without weir; see {place.work.name}.log"
        return result
    if (brought := bring_files(mode, place.work)).status != 0:
        result.steps["files to their place"] = brought
    result.outputs = digest_files(place.work, suite.outputs)
    # The plain run has the step as well, so that the sets of items are the same.
    result.steps["weir report"] = read_trace(place.work) if mode.level else StepResult(0, {})
    remove_tree(place.work)
    return result


def remove_tree(directory: Path) -> None:
    """Remove what a suite left, also where it left directories without permissions."""
    if directory.exists():
        subprocess.run(["chmod", "-R", "u+rwX", str(directory)], capture_output=True, check=False)
        shutil.rmtree(directory, ignore_errors=True)


def debian_version(package: str) -> str:
    """The installed version of a Debian package."""
    command = ["dpkg-query", "-W", "-f", "${Version}", package]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"{package} {done.stdout}" if done.returncode == 0 else f"{package} (not installed)"


def tree_version(place: Place) -> str:
    """What git calls the tree of sources."""
    command = ["git", "-C", str(place.tree), "describe", "--tags", "--always"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"{place.tree.name} {done.stdout.strip() or 'of unknown version'}"
