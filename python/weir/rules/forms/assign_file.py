# SPDX-License-Identifier: Apache-2.0
"""The file of assignments as ``weir assign`` changes it: whole or not at all, one command at a
time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from weir._errors import InputError, StorageError, UsageError
from weir._files import complete_file
from weir.rules.forms.assign import Assignment, parse_assign, parse_lines
from weir.rules.mistakes import Mistake, RulesError, near
from weir.rules.model import RuleSet


def read_assignments(path: str) -> list[Assignment]:
    """The assignments of a file, none when it does not exist. Raises RulesError, InputError."""
    mistakes: list[Mistake] = []
    known = [a for _, _, a in parse_lines(_read(path), path, mistakes)]
    if mistakes:
        raise RulesError(mistakes)
    return known


def read_assign(path: str) -> RuleSet:
    """The rules of the file; none when it does not exist. Raises RulesError, InputError."""
    return parse_assign(_read(path), path)


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise InputError(f"{path}: the assignments cannot be read: {error.strerror}") from error


@contextmanager
def _alone(directory: str) -> Iterator[None]:
    """Between reading and replacing the file nobody else does; where directories cannot be locked,
    only the replacing is safe."""
    with suppress(OSError):
        lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)
        return
    yield


def change(path: str, edit: Callable[[list[Assignment]], list[Assignment]]) -> None:
    """Replace the file's assignments by what ``edit`` makes of them. Raises StorageError, and what
    edit raises."""
    directory = os.path.dirname(os.path.abspath(path))
    with _alone(directory):
        after = edit(read_assignments(path))
        text = "".join(f"{a.line()}\n" for a in after)
        parse_assign(text, path)  # nothing is written that could not be read
        try:
            with complete_file(path, 0o644) as file:
                file.write(text.encode("utf-8", "surrogateescape"))
        except OSError as error:
            raise StorageError(
                f"{path}: the assignments cannot be written: {error.strerror}") from error


def assign(path: str, objects: Sequence[str], new: Assignment, incremental: bool) -> None:
    """Give each object these attributes: in place of those it has, or beside them. Raises
    RulesError before anything changes."""

    def edit(known: list[Assignment]) -> list[Assignment]:
        given = []
        for name in dict.fromkeys(objects):
            old = next((a for a in known if a.object == name), None)
            made = Assignment(name, new.spec, dict(new.attributes))
            if incremental and old is not None:
                made = Assignment(name, new.spec if new.spec is not None else old.spec,
                    {**old.attributes, **new.attributes})
            known = [*known, made] if old is None else [made if a is old else a for a in known]
            given.append(made.line())
        # mistakes are shown in what was given, not in the file
        parse_assign("\n".join(given), "assign")
        return known

    change(path, edit)


def remove(path: str, objects: Sequence[str]) -> None:
    """Remove what is assigned to these objects, or all of it. Raises UsageError for an object to
    which nothing is."""

    def edit(known: list[Assignment]) -> list[Assignment]:
        for name in objects:
            if name not in [a.object for a in known]:
                raise UsageError(
                    f"{path}: nothing is assigned to {name}{near(name, [a.object for a in known])}")
        return [a for a in known if objects and a.object not in objects]

    change(path, edit)
