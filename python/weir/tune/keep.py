# SPDX-License-Identifier: Apache-2.0
"""What a run made, put into the user's directory: for --keep alone.

The run's copy is renamed beside it, on the same file system. Each file then takes the place of
the user's by rename(2), so that it is there whole or as before; an interrupted one goes on.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from weir._errors import StorageError
from weir.tune.workdir import Entry, Key, listing, remove

SUFFIX = "-result"  # of the copy that holds what a run made


@dataclass(frozen=True)
class Result:
    """What one run did to its directory. rules: paths of those in force; changed: files and links
    that it made or changed, made: directories; removed: what is no longer there. is_moving: whether
    it is on its way into the user's directory."""

    rules: tuple[str, ...]
    changed: tuple[str, ...]
    made: tuple[str, ...]
    removed: tuple[str, ...]
    is_moving: bool = False


def save_result(work: Path, before: Mapping[str, Key], rules: tuple[str, ...],
        source: Path) -> Result:
    """Of a run that ended in its copy; that of an earlier run is removed. Raises
    StorageError."""
    after = {one.path: one for one in listing(work, follow=False)}
    changed = tuple(path for path, one in after.items() if before.get(path) != one.key)
    below = [Path(above, name) for above, names, _ in os.walk(work) for name in names]
    made = tuple(sorted(str(one.relative_to(work)) for one in below
        if not one.is_symlink() and not (source / one.relative_to(work)).is_dir()))
    target = result_directory(work)
    remove(target)
    try:
        work.rename(target)
    except OSError as error:
        raise StorageError(f"{target}: what the run made cannot be renamed: "
                           f"{error.strerror}") from error
    return Result(rules, changed, made, tuple(sorted(before.keys() - after.keys())))


def result_directory(work: Path) -> Path:
    return work.with_name(f"{work.name}{SUFFIX}")


def move(result: Result, entries: Mapping[str, Entry], work: Path, directory: Path) -> None:
    """Into the user's directory, and where links of it lead. Again after an interruption it moves
    what is left. Raises StorageError."""
    kept = result_directory(work)
    for path in result.made:
        _at(path, entries, directory).mkdir(parents=True, exist_ok=True)
    for path in result.changed:
        if os.path.lexists(kept / path):
            _replace(kept / path, _at(path, entries, directory), work, directory)
    for path in result.removed:
        with suppress(FileNotFoundError, IsADirectoryError):
            (directory / path).unlink()
    remove(kept)


def _at(path: str, entries: Mapping[str, Entry], directory: Path) -> Path:
    """Where the user has it: what links outside lead to is a file or a directory of the copy."""
    entry = entries.get(path)
    if entry is not None and entry.link is None:
        return Path(entry.source)
    above = entries.get(os.path.dirname(path))
    return Path(above.source, os.path.basename(path)) if above is not None else directory / path


def _replace(made: Path, target: Path, work: Path, directory: Path) -> None:
    try:
        if made.is_symlink():
            text = os.readlink(made)
            if text == str(work) or text.startswith(f"{work}/"):
                made.unlink()
                made.symlink_to(str(directory) + text[len(str(work)) :])
        try:
            os.replace(made, target)
        except OSError:  # behind a link, on another file system
            _copied(made, target)
    except OSError as error:
        raise StorageError(f"{target}: cannot be replaced by what the run made: {error.strerror}; "
                           f"the same command goes on") from error


def _copied(made: Path, target: Path) -> None:
    """By a name that is not seen until it is complete."""
    number, name = tempfile.mkstemp(prefix=".weir-tune-", dir=target.parent)
    os.close(number)
    try:
        if stat.S_ISLNK(os.lstat(made).st_mode):
            os.unlink(name)
            os.symlink(os.readlink(made), name)
        else:
            shutil.copy2(made, name)
        os.replace(name, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name)
        raise
    made.unlink()
