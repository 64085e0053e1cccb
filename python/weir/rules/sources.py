# SPDX-License-Identifier: Apache-2.0
"""Where a run's rules come from, and in which order they are asked.

First the files of --rules, in the order given; without any, the assignments of $WEIR_ASSIGN_FILE,
$FILENV or .assign. Then IOBUF_PARAMS and MPICH_MPIIO_HINTS, which are set for a whole job and so
say what nobody said more closely.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from weir._errors import InputError, NotThere
from weir.rules.forms.assign import assignment_file, parse_assign
from weir.rules.forms.assign_file import read_assign
from weir.rules.forms.iobuf import VARIABLE as IOBUF
from weir.rules.forms.iobuf import parse_iobuf
from weir.rules.forms.mpiio_hints import VARIABLE as MPIIO
from weir.rules.forms.mpiio_hints import parse_mpiio_hints
from weir.rules.forms.toml import decode_toml, read_once
from weir.rules.mistakes import Mistake, RulesError
from weir.rules.model import RuleSet

_KINDS = "a file of rules is TOML (*.toml), or has lines `assign -F ...`"


def read_file(path: str) -> RuleSet:
    """The rules of one file: TOML, or assignments. Raises RulesError, InputError."""
    if not os.path.lexists(path):
        raise NotThere(f"{path}: there is no such file of rules")
    if os.path.isdir(path):
        raise InputError(f"{path}: this is a directory; {_KINDS}")
    data = read_once(path)
    if not path.endswith(".toml") and _begins_with_assign(data):
        return parse_assign(data.decode("utf-8", "surrogateescape"), path)
    return decode_toml(data, path)


def _begins_with_assign(data: bytes) -> bool:
    lines = data.decode("utf-8", "replace").splitlines()
    words = next((line.split() for line in lines if line.strip()
        and not line.lstrip().startswith("#")), [])
    return words[:1] == ["assign"] or words[:2] == ["weir", "assign"]


def gather_rules(files: Sequence[str], environ: Mapping[str, str]) -> RuleSet:
    """The rules of a run. Raises RulesError with the mistakes of all sources, InputError for a file
    that cannot be read."""
    found = RuleSet()
    mistakes: list[Mistake] = []
    readers = [lambda path=path: read_file(path) for path in files]
    if not files and os.path.exists(path := assignment_file(environ)):
        readers.append(lambda: read_assign(path))
    readers.append(lambda: parse_iobuf(environ.get(IOBUF, "")))
    readers.append(lambda: parse_mpiio_hints(environ.get(MPIIO, "")))
    for read in readers:
        try:
            found += read()
        except RulesError as error:
            mistakes += error.mistakes
    if mistakes:
        raise RulesError(mistakes)
    return found
