# SPDX-License-Identifier: Apache-2.0
"""``weir tune``"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

Command = Annotated[list[str], typer.Argument(metavar="COMMAND", show_default=False,
    help="What to run, with its arguments; put -- in front.")]
Out = Annotated[Path, typer.Option("--output", "-o", metavar="OUT",
    help="Directory for traces, rules.toml, report.md; an interrupted tune continues there.")]
Dir = Annotated[Path, typer.Option("--dir", metavar="DIR",
    help="Directory with the files that the command reads and writes: each run works on a copy.")]
Runs = Annotated[int, typer.Option("--runs", min=2, metavar="N",
    help="Run the command at most N times.")]
Minutes = Annotated[float, typer.Option("--minutes", min=0, metavar="M",
    help="Start no run after M minutes.")]
Allow = Annotated[list[str] | None, typer.Option("--allow", metavar="LAYER",
    help="Also try rules that change where files are stored: stage, pack; repeatable.")]
Keep = Annotated[bool, typer.Option("--keep",
    help="At the end, copy into DIR what a run with the kept rules created and changed.")]
Search = Annotated[int, typer.Option("--search", min=0, metavar="N",
    help="Then search block sizes, buffers, aggregators in N more runs (needs Optuna).")]
Vary = Annotated[list[str] | None, typer.Option("--vary", metavar="NAME=A,B,...",
    help="Also search these values for {NAME} in the command, e.g. servers=1,2,4; repeatable.")]

CONTEXT = {"allow_interspersed_args": False}  # options after PROGRAM are the program's
LAYERS = ("stage", "pack")


def tune(
    command: Command,
    output: Out = Path("weir-tune"),
    dir: Dir = Path("."),
    runs: Runs = 9,
    minutes: Minutes = 60,
    allow: Allow = None,
    keep: Keep = False,
    search: Search = 0,
    vary: Vary = None,
) -> None:
    """Find rules that make a command faster, and test them.

    Runs the command, traced, on a copy of DIR; makes rules of what weir advise finds; runs the
    command with them and without in turn; compares outputs, requests and seconds; drops rules that
    do not pay or that change an output. Writes OUT/rules.toml and OUT/report.md, and prints a
    sentence. No file in DIR changes, except at the end with --keep. Runs stop when the difference
    is sure, or after --runs or --minutes. Exit status 1: the command waits for I/O for half of its
    time or more, and there is no rule to try.

    Example: weir tune -o tuned -- mpirun -n 8 ./model namelist
    """
    from weir._errors import NotThere, UsageError
    from weir.advise.probes import probes
    from weir.capture._launch import say
    from weir.report.frame.amounts import counted
    from weir.tune.search import parse_vary
    from weir.tune.text import (
        for_directory,
        is_without_cure,
        kept_sentence,
        markdown,
        rules_text,
        search_sentence,
        sentence,
    )
    from weir.tune.tune import Options, Tuning

    if vary and not search:
        raise UsageError("--vary: give --search N as well, the number of runs to search by")
    unknown = set(allow or ()) - set(LAYERS)
    if unknown:
        raise UsageError(f"--allow {' '.join(sorted(unknown))}: choose one of {', '.join(LAYERS)}")
    if not dir.is_dir():
        raise NotThere(f"{dir}: not a directory; --dir names the one that the command works in")
    directory, out = dir.resolve(), output.resolve()
    _make(out)
    options = Options(runs, minutes, tuple(allow or ()), probes(),
        keep, search, parse_vary(vary or (), command))
    with _alone(out), _ended_by_signals():
        tuning = Tuning(out, directory, command, options, say)
        try:
            found = tuning.run()
        except (KeyboardInterrupt, SystemExit):
            count = len(tuning.state.runs)
            say(f"interrupted; {output} keeps {counted(count, 'complete run')}: the same command "
                f"continues after {'them' if count > 1 else 'it'}" if count else
                "interrupted before a run was complete: the same command begins again")
            raise
        for name, text in (("rules.toml", rules_text(found)), ("report.md", markdown(found))):
            _write(out / name, for_directory(text, tuning))
    typer.echo(sentence(found))
    if found.found is not None:
        typer.echo(for_directory(search_sentence(found), tuning))
    if keep:
        typer.echo(kept_sentence(found, str(directory)))
    typer.echo(f"{output}: rules.toml, report.md")
    if is_without_cure(found):
        raise typer.Exit(1)


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Raises UsageError while another tune works in the directory."""
    import fcntl
    import os
    from contextlib import suppress

    from weir._errors import StorageError, UsageError

    try:
        lock = os.open(out / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise StorageError(f"{out}: cannot be written: {error.strerror}") from error
    try:
        with suppress(OSError):  # a file system without locks
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(f"{out}: another weir tune works there; wait for its end, or name "
                                 f"another directory with -o") from None
        yield
    finally:
        os.close(lock)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end tune as Ctrl-C does: the run under way ends, its copy is removed."""
    import signal

    def stop(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    before = {one: signal.signal(one, stop) for one in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _make(out: Path) -> None:
    from weir._errors import StorageError

    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{out}: cannot be made: {error.strerror}") from error


def _write(path: Path, text: str) -> None:
    from weir._errors import StorageError
    from weir._files import complete_file

    try:
        with complete_file(path) as file:
            file.write(text.encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise StorageError(f"{path}: cannot be written: {error.strerror}") from error
