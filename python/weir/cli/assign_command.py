# SPDX-License-Identifier: Apache-2.0
"""``weir assign``"""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer

from weir.cli import _rules

Objects = Annotated[
    list[str] | None,
    typer.Argument(metavar="[OBJECT]...", show_default=False,
        help="f:NAME, p:PATTERN, u:UNIT, g:su, g:sf, g:du, g:df or g:all; several are allowed."),
]
Spec = Annotated[str | None, typer.Option("-F", metavar="SPEC",
    help="Layers, the top one first, e.g. bufa:256:2 or event,bufa:1MiB:2.")]
View = Annotated[bool, typer.Option("-V",
    help="Print the assignments of the objects, or all assignments.")]
Remove = Annotated[bool, typer.Option("-R",
    help="Remove the assignments of the objects, or all assignments.")]
Add = Annotated[bool, typer.Option("-I",
    help="Add to the assignments that the objects have (incremental).")]
Replace = Annotated[bool, typer.Option("-O",
    help="Replace the assignments that the objects have (the default).")]
Name = Annotated[str | None, typer.Option("--name", metavar="PATTERN",
    help="Only files whose file name matches.")]
Path = Annotated[str | None, typer.Option("--path", metavar="PATTERN",
    help="Only files whose absolute path matches.")]
Dir = Annotated[str | None, typer.Option("--dir", metavar="DIR",
    help="Only files in or below this directory.")]
Fstype = Annotated[str | None, typer.Option("--fstype", metavar="LIST",
    help="Only on these file systems, e.g. lustre,nfs4.")]
Unit = Annotated[str | None, typer.Option("--unit", metavar="LIST",
    help="Only these Fortran units, e.g. 61,70-79.")]
Access = Annotated[str | None, typer.Option("--access", metavar="A",
    help="Only sequential, direct or stream Fortran files.")]
Form = Annotated[str | None, typer.Option("--form", metavar="F",
    help="Only formatted or unformatted Fortran files.")]
Mode = Annotated[str | None, typer.Option("--mode", metavar="LIST",
    help="Only opens in these modes: read, write, readwrite, append, create, truncate.")]
MinSize = Annotated[str | None, typer.Option("--min-size", metavar="SIZE",
    help="Only files of at least this size.")]
MaxSize = Annotated[str | None, typer.Option("--max-size", metavar="SIZE",
    help="Only files of at most this size.")]
Ranks = Annotated[str | None, typer.Option("--ranks", metavar="LIST",
    help="Only in these ranks, e.g. 0-3,8.")]
Explain = Annotated[
    str | None, typer.Option("--explain", metavar="FILE",
        help="Print which rule applies to this file, and why; --unit, --mode ... describe the "
             "open.")
]
Rank = Annotated[int | None, typer.Option("--rank", min=0, metavar="N",
    help="With --explain: assume this rank.")]
Size = Annotated[str | None, typer.Option("--size", metavar="SIZE",
    help="With --explain: assume this file size.")]
Convert = Annotated[str | None, typer.Option("--convert", metavar="FORM",
    help="Print the rules as toml, assign or iobuf.")]


def assign(
    objects: Objects = None,
    spec: Spec = None,
    view: View = False,
    remove: Remove = False,
    add: Add = False,
    replace: Replace = False,
    name: Name = None,
    path: Path = None,
    dir: Dir = None,
    fstype: Fstype = None,
    unit: Unit = None,
    access: Access = None,
    form: Form = None,
    mode: Mode = None,
    min_size: MinSize = None,
    max_size: MaxSize = None,
    ranks: Ranks = None,
    explain: Explain = None,
    rank: Rank = None,
    size: Size = None,
    convert: Convert = None,
    rules: _rules.Rules = None,
) -> None:
    """Assign layers to files, as Cray's assign does; explain or convert rules.

    Assignments are stored in the file $WEIR_ASSIGN_FILE, $FILENV or .assign, where weir run finds
    them. Names are tried first, then patterns, units, kinds of Fortran files and g:all, as on Cray.
    --rules FILE lets --explain and --convert use FILE instead.
    """
    from weir._errors import UsageError

    given = {
        "name": name, "path": path, "dir": dir, "fstype": fstype, "unit": unit, "access": access,
        "form": form,
        "mode": mode, "min_size": min_size, "max_size": max_size, "ranks": ranks,
    }  # fmt: skip
    attributes = {key: value for key, value in given.items() if value is not None}
    chosen = [n for n, v in (("-V", view), ("-R", remove), ("--explain", explain is not None),
        ("--convert", convert is not None)) if v]
    if len(chosen) > 1 or (chosen and (spec is not None or add or replace)):
        raise UsageError(
            f"{' and '.join([*chosen, *(['-F'] if spec is not None else [])])}: one at a time")
    if explain is not None:
        if objects:
            raise UsageError(
                f"--explain {explain}: leave {' '.join(objects)} out; one file at a time is "
                f"explained")
        _explain(explain, attributes, rank, size, rules or [])
        return
    if (rank, size) != (None, None):
        raise UsageError("--rank and --size describe the open of --explain FILE")
    if convert is not None:
        if objects or attributes:
            raise UsageError("--convert is about all rules: leave objects and conditions out")
        _convert(convert, rules or [])
        return
    if rules:
        raise UsageError(
            "--rules is used with --explain or --convert; assignments are in a file of their own")
    _edit(objects or [], spec, view, remove, add, replace, attributes)


def _edit(objects: list[str], spec: str | None, view: bool, remove: bool, add: bool, replace: bool,
        attributes: dict[str, str]) -> None:
    from weir._errors import UsageError
    from weir.rules.forms import assign_file
    from weir.rules.forms.assign import Assignment, assignment_file

    path = assignment_file(os.environ)
    if (view or remove) and attributes:
        raise UsageError("-V and -R take objects alone")
    if view:
        _view(path, objects)
    elif remove:
        assign_file.remove(path, objects)
    elif add and replace:
        raise UsageError("-I adds, -O replaces: choose one")
    elif not objects:
        raise UsageError("nothing to assign to: name an object, such as f:trajgrid* or u:61")
    elif spec is None and not (add and attributes):
        raise UsageError("nothing to assign: give layers, as in -F bufa:256:2")
    else:
        assign_file.assign(path, objects, Assignment("", spec, attributes), add)


def _view(path: str, objects: list[str]) -> None:
    from weir._errors import UsageError
    from weir.rules.forms.assign_file import read_assignments
    from weir.rules.mistakes import near

    known = read_assignments(path)
    for name in objects:
        if name not in [a.object for a in known]:
            raise UsageError(
                f"{path}: nothing is assigned to {name}{near(name, [a.object for a in known])}")
    for assignment in known:
        if not objects or assignment.object in objects:
            _print(f"{assignment.line()}\n")


def _explain(file: str, attributes: dict[str, str], rank: int | None, size: str | None,
        rules: list[str]) -> None:
    from weir._errors import UsageError
    from weir.rules.forms.fields import parse_condition
    from weir.rules.matching.explain import explain, open_of
    from weir.rules.mistakes import Wrong
    from weir.rules.sources import gather_rules
    from weir.rules.values import parse_size

    describing = ("unit", "access", "form", "mode", "fstype")
    for key in attributes:
        if key not in describing:
            raise UsageError(
                f"--{key.replace('_', '-')} does not describe an open; --unit, --access, --form, "
                f"--mode, --fstype, --rank and --size do")
    found: dict[str, Any] = {}
    try:
        for key, value in attributes.items():
            found[key] = value if key == "fstype" else parse_condition(key,
                [(value, lambda offset: offset)])
        bytes_ = parse_size(size, 1) if size is not None else None
    except Wrong as wrong:
        raise UsageError(f"--explain: {wrong.message}") from None
    unit = found.pop("unit", None)
    if unit is not None and (len(unit) != 1 or unit[0][0] != unit[0][1]):
        raise UsageError("--unit: the open of one file has one unit")
    fortran = unit is not None or "access" in found or "form" in found
    if fortran:  # what Fortran takes when OPEN does not say
        found.setdefault("access", "sequential")
        found.setdefault("form", "formatted" if found["access"] == "sequential" else "unformatted")
    opened = open_of(
        file, found.pop("mode", ()), bytes_, found.pop("fstype", None),
        rank=rank, fortran=fortran, unit=unit[0][0] if unit else None, **found,
    )  # fmt: skip
    _print(explain(gather_rules(rules, os.environ), opened))


def _convert(form: str, rules: list[str]) -> None:
    from weir.capture._launch import say
    from weir.rules.forms.convert import convert
    from weir.rules.sources import gather_rules

    gathered = gather_rules(rules, os.environ)
    text = convert(gathered, form)
    for warning in gathered.warnings:
        say(f"warning: {warning.place}: {warning.message}")
    _print(text)


def _print(text: str) -> None:
    sys.stdout.buffer.write(os.fsencode(text))
    sys.stdout.buffer.flush()
