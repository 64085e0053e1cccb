#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the pages of docs/reference that are made from code: the command, its environment, layers,
native tables.

Needs the environment of the source tree: .venv/bin/python tools/gen_docs.py [--check]; with --check
it prints which pages are out of date (status 1).
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import typer

from weir.capture._environment import VARIABLES
from weir.cli._app import app_for
from weir.query.schema import DECLARED, TABLES
from weir.advise.advise import LEAST, SHARE
from weir.advise.costs import WAITS
from weir.advise.findings.registry import FINDINGS
from weir.advise.frame.finding import Limit
from weir.advise.text import SEVERAL, STANDS_OUT
from weir.report.frame.declared import Field
from weir.rules.layers import ERRNOS, Argument, Kind, kinds
from weir.rules.values import size_text

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "docs" / "reference"
EXIT_STATUSES = (
    (0, "success; for `weir trace`: the command succeeded and there is a trace of it"),
    (1, "findings (`weir doctor`), a threshold that was exceeded (`weir compare`)"),
    (2, "wrong usage: unknown or contradicting options, a mistake in rules, an output directory "
        "that has a trace already"),
    (3, "bad input, or no trace can be written; for `weir trace`: the command succeeded, but "
        "without a trace"),
    (4, "the trace is incomplete; the report was printed and states what is missing"),
    (5, "`weir run`, `weir trace --rules`: the command succeeded, but bytes that it wrote are not "
        "in their files; standard error names the files"),
    (70, "an internal error of weir"),
    (126, "`weir trace`, `weir run`: the command cannot be executed"),
    (127, "`weir trace`, `weir run`: there is no such command"),
    ("128 + n", "`weir trace`, `weir run`: signal n killed the command; 143: SIGTERM, 137: "
                "SIGKILL, 139: SIGSEGV"),
    ("others", "`weir trace`, `weir run`: the exit status of the command, whatever it is"),
)
CLASSES = {
    "R": "reads",
    "W": "writes",
    "O": "opens",
    "C": "closes",
    "M": "other I/O",
    "X": "not I/O",
}
LIBRARIES = {
    "c": "The C library",
    "fortran": "libgfortran",
    "aio": "libaio",
    "uring": "liburing",
    "mpi": "MPI, C and Fortran names",
    "pnetcdf": "PnetCDF",
    "netcdf": "netCDF-C",
    "hdf5": "HDF5",
}
# What a row of native/hook/table.def for several functions stands for.
FORTRAN = ("{0}_", "{0}__", "{0}", "{1}", "{0}_f08_")
TYPES = ("text", "schar", "uchar", "short", "ushort", "int", "uint", "long", "float", "double",
    "longlong", "ulonglong")



def made_from(source: str) -> str:
    return f"<!-- made by tools/gen_docs.py from {source}; `make reference` renews it -->\n"


def cell(text: object) -> str:
    return " ".join(str(text).split()).replace("|", "\\|")


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *([cell(c) for c in row] for row in rows)]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def option_row(parameter: Any) -> list[str]:
    """One line of a verb's table: its spellings with the value's name, the default, what it is for.
    """
    spellings = [*sorted(parameter.opts, key=len, reverse=True), *parameter.secondary_opts]
    names = ", ".join(f"`{name}`" for name in spellings)
    is_flag = getattr(parameter, "is_flag", False)
    value = "" if is_flag else f" {parameter.metavar or 'VALUE'}"
    shown = is_flag or parameter.default in (None, "", ())
    return [names + value, "" if shown else f"`{parameter.default}`", parameter.help or ""]


def argument_name(parameter: Any) -> str:
    name = parameter.metavar or parameter.name.upper()
    if parameter.nargs == -1:
        return name if name.endswith("...") else f"-- {name} [ARGUMENT]..."
    return name if parameter.required else f"[{name}]"


def argument_row(parameter: Any) -> list[str]:
    return [f"`{argument_name(parameter)}`", "", getattr(parameter, "help", None) or ""]


def rows_of(command: Any) -> Iterator[list[str]]:
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            yield argument_row(parameter)
    for parameter in command.params:
        if parameter.param_type_name == "option" and parameter.name != "help":
            yield option_row(parameter)


def usage_of(name: str, command: Any) -> str:
    arguments = [argument_name(p) for p in command.params if p.param_type_name == "argument"]
    return " ".join(["weir", name, "[OPTIONS]", *arguments])


def verbs_of(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Every verb with its full name; a verb that has verbs of its own is represented by these."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from verbs_of(command, f"{before}{name} ")
        else:
            yield before + name, command


def commands() -> str:
    group = typer.main.get_command(app_for([]))
    parts = ["# Commands\n\n", made_from("the command itself"), f"\n`weir`: {group.help}\n"]
    for name, command in verbs_of(group):
        text = inspect.cleandoc(command.help or "")
        parts += [
            f"\n## weir {name}\n\n",
            f"    {usage_of(name, command)}\n\n",
            f"{text}\n\n",
            table(["option or argument", "default", "meaning"], list(rows_of(command))),
        ]
    parts += ["\n## Exit status\n\n",
        table(["status", "meaning"], [[str(s), m] for s, m in EXIT_STATUSES])]
    return "".join(parts)


def environment() -> str:
    rows = [
        [f"`{v.name}`", v.values, v.default, v.meaning + (" Set by `weir trace` and `weir env`."
            if v.launcher else "")]
        for v in VARIABLES
    ]
    rows.append(["`LD_PRELOAD`", "libraries", "",
        "weir's library comes first in it. Set by `weir trace` and `weir env`."])
    return (
        "# Environment\n\n"
        + made_from("python/weir/capture/_environment.py")
        + "\nThe preload library reads these variables when a program starts, those of libweir are "
          "read by weir_init; a program started\n"
        "with an environment of its own runs untraced. `weir env --off` removes what `weir env` "
        "set.\n\n" + table(["variable", "values", "default", "meaning"], rows)
    )


def argument_bounds(argument: Argument) -> str:
    show = size_text if argument.kind in ("size", "bytes") else str
    if argument.choices:
        return ", ".join(f"`{c}`" for c in argument.choices)
    if argument.kind in ("size", "count", "bytes"):
        most = f" to {show(argument.high)}" if argument.high < (1 << 62) else ""
        return f"from {show(argument.low)}{most}"
    fixed = {"fraction": "0 to 1", "flag": "0, 1", "errno": "see below", "directories": "absolute",
        "directory": "absolute", "file": "ends in .zip"}
    return fixed[argument.kind]


def argument_default(argument: Argument) -> str:
    """What holds where the argument is left out. "none": it then has no effect."""
    if argument.required:
        return "must be given"
    value = argument.default if argument.default is not None else argument.otherwise
    if value is None:
        return "`0`" if argument.kind == "flag" else "none"
    return f"`{size_text(int(value)) if argument.kind == 'size' else value}`"


def layer_rows(kind: Kind) -> list[list[str]]:
    rows = []
    for argument in (*kind.positional, *kind.options):
        name = argument.name if argument in kind.positional else f"{argument.name}="
        default, bounds = argument_default(argument), argument_bounds(argument)
        rows.append([f"`{name}`", argument.kind, default, bounds, argument.help])
    return rows


def layer_usage(kind: Kind) -> str:
    """The layer as a stack names it; what may be left out is in brackets."""
    by_place = ""
    for argument in reversed(kind.positional):
        by_place = f"[:{argument.name}{by_place}]"
    options = ""
    for option in kind.options:
        text = f":{option.name}=" + ("0|1" if option.kind == "flag" else "")
        options += text if option.required else f"[{text}]"
    return kind.name + by_place + options


def layers() -> str:
    parts = [
        "# Layers and their arguments\n\n",
        made_from("native/layers/*/layer.toml"),
        "\nWhat a stack in [rules](../guide/rules.md) may consist of. What stands in brackets may "
        "be left out; default\n"
        "*none*: it has no effect then. Positional arguments come first; key=value arguments may "
        "follow in any order.\n\n"
        "A *size* without a unit is a number of blocks of 4 KiB, as in FFIO: `bufa:256:2` is "
        "`bufa:1MiB:2`, and\n"
        "`bufa:4096:2` has buffers of 16 MiB. A size is a multiple of 4 KiB. *bytes* without a "
        "unit are bytes.\n",
    ]
    for kind in kinds().values():
        page = ROOT / "native" / "layers" / kind.name / "README.md"
        link = f" [Its page](../../native/layers/{kind.name}/README.md)." if page.exists() else ""
        parts += [f"\n## {kind.name}\n\n`{layer_usage(kind)}`: {kind.summary}.{link}\n"]
        if rows := layer_rows(kind):
            parts += ["\n", table(["argument", "kind", "default", "bounds", "meaning"], rows)]
    errnos = [[f"`{op}`", ", ".join(f"`{e}`" for e in sorted(known))]
        for op, known in ERRNOS.items()]
    parts += ["\n## Errnos of layer `error`\n\nEach operation accepts the errnos that its man page "
              "documents.\n\n", table(["op", "errno"], errnos)]
    return "".join(parts)


def report_columns(field: Field) -> list[str]:
    """What stands above the column in the text; its key in JSON, where that is another word."""
    above = ": ".join(filter(None, (field.group, field.heading.lstrip("<"))))
    key = field.json_key
    return [above, "-" if key is None else "" if key == field.name else f"`{key}`"]


def query() -> str:
    parts = [
        "# Tables of `weir query`\n\n",
        made_from("python/weir/query/schema.py"),
        "\n`weir query RUN SQL`, `weir.open(RUN).sql(SQL)`, `weir.open(RUN).TABLE`, and `weir "
        "export --to parquet` and `--to csv` have these tables;\n"
        "[how to ask](../guide/query.md). Tables and columns are only ever added.\n\n"
        "*int* is 64 bits wide, *int32* 32; *path* and *list* are texts, a list has blanks between "
        "its items; a ? says that\n"
        "a value may be null. Unit 1: a share, from 0 to 1. Times are ns since 1970, clocks of "
        "nodes aligned.\n\n"
        "*heading*: where the column stands in the text of [`weir report`](tables.md), after the "
        "words above it; there,\n"
        "bytes are in MB, ns in s, shares in %. *key*: in its JSON, where it is not the name of "
        "the\n"
        "column (-: it is not there); times are in s there, unless the key ends with ns. An "
        "*object* is only there.\n",
    ]
    for one in TABLES:
        head, fields = ["column", "kind", "unit", "meaning"], one.columns
        rows = [[f"`{f.name}`", f.kind, f.unit, f.meaning] for f in fields]
        if one.name in DECLARED:
            fields = [part for f in DECLARED[one.name].fields for part in f.parts]
            head += ["heading", "key"]
            rows = [[f"`{f.name}`", f.kind, f.unit, f.meaning, *report_columns(f)] for f in fields]
        parts += [f"\n## {one.name}\n\n{one.meaning[0].upper()}{one.meaning[1:]}.\n\n",
            table(head, rows)]
        if one.sql:
            parts += [f"\nA view:\n\n```sql\n{inspect.cleandoc(one.sql)}\n```\n"]
    return "".join(parts)


def operations() -> str:
    """Operations of the trace, from native/wire/ops.def."""
    source = "native/wire/ops.def"
    found = re.findall(r'^WEIR_OP\((\d+), \w+, "([^"]+)", (\w+), (\w)\)',
        (ROOT / source).read_text(), re.M)
    rows = [[number, f"`{name}`", layer, CLASSES[kind]] for number, name, layer, kind in found]
    return (
        "# Operations\n\n"
        + made_from(source)
        + "\nWhat the tables call the operation of a record, the number it has in the "
          "[trace](../formats/trace.md), the layer\n"
        "that records it, and how it is counted. All spellings of a call (64-bit, `_chk`, older "
        "versions) share one operation.\n\n"
        + table(["number", "operation", "layer", "counted as"], rows)
    )


def hooked(declared: str) -> list[tuple[str, str]]:
    """The functions of native/hook/table.def and their libraries, in its order."""
    declared = re.sub(r'^#include "(hook/\w+\.def)"$', lambda m: (ROOT / "native" / m[1])
        .read_text(), declared, flags=re.M)
    found: list[tuple[str, str]] = []
    for kind, first, second, third in re.findall(r"^WEIR_HOOKED(\w*)\((\w+), (\w+)(?:, (\w*))?\)",
            declared, re.M):
        if kind == "_FORTRAN":
            found += [(spelling.format(first, second), "mpi") for spelling in FORTRAN]
        elif kind == "_MPI":
            found.append((f"MPI_{first}", "mpi"))
            found += [(spelling.format(f"mpi_{second}", f"MPI_{third}"), "mpi")
                for spelling in FORTRAN]
        elif kind == "_TYPES":
            found += [(f"{first}_{of}{third}", second) for of in TYPES]
        else:
            found.append((first, second))
    return found


def functions() -> str:
    """Functions the preload library stands in front of, from native/hook/table.def."""
    source = "native/hook/table.def"
    found = hooked((ROOT / source).read_text())
    parts = [
        "# Functions that are seen\n\n",
        made_from(source),
        f"\nA call of any of these {len(found)} functions from any part of a dynamically linked "
        f"program is recorded, or followed so that\n"
        "other records are right. [Operations](operations.md) lists what they are called in "
        "tables.\n",
    ]
    libraries = dict.fromkeys(library for _, library in found)
    for library in libraries:
        names = ", ".join(f"`{name}`" for name, of in found if of == library)
        parts.append(f"\n## {LIBRARIES.get(library, library)}\n\n{names}\n")
    return "".join(parts)


def formats() -> str:
    """Formats of the output library, from native/output/format/formats.def."""
    source = "native/output/format/formats.def"
    row = r'^WEIR_FORMAT\((\w+), k(\w+), (\w+), "(.*)", (\w+),\s+"(.*)",\s+"(.*)",\s+"(.*)"\)'
    rows = []
    for name, order, _, methods, chunk, refused, what, who in re.findall(row,
            (ROOT / source).read_text(), re.M):
        limits = [refused] if refused else []
        if int(chunk, 0):
            limits.append(f"a chunk has more than {(int(chunk, 0) + 1) >> 30} GiB")
        numbers = "big-endian" if order == "Big" else "little-endian"
        name = f"`{name}`" if rows else f"`{name}` (default)"
        rows.append([name, what, who, numbers, methods or "none", "; ".join(limits)])
    return (
        "# Formats of output files\n\n"
        + made_from(source)
        + "\nThe `format` of a stream of the output library. [Files that libweir "
          "writes](../formats/output.md) describes their contents.\n\n"
        + table(["`format`", "what it is", "who writes", "numbers", "compression", "refused where"],
            rows)
    )


def findings() -> str:
    heads = ["what is compared", "limit", "why"]

    def limits(every: Sequence[Limit]) -> str:
        return table(heads, [[one.compared, one.text, one.reason] for one in every])

    parts = [
        "# Findings\n\n",
        made_from("python/weir/advise/findings"),
        "\nWhat does weir look for in a run? The first screen of `weir report` and its HTML page "
        "have the findings that are worth most, `weir advise` and key `findings` of `weir report "
        "--json` all of them. [What costs, and what cures it](../guide/advise.md) shows how to "
        "read them. Each is printed when its cure saves at least as much as this:\n\n",
        limits([SHARE, LEAST]),
        "\n`No smoking gun` stands above the findings where no single cause is large:\n\n",
        limits([STANDS_OUT, SEVERAL]),
        "\n`weir tune` ends with status 1 where no rule is there to try and the run waits for I/O:"
        "\n\n",
        limits([WAITS]),
        "\nA limit is a count, a size, a time, a rate, a share of the whole (%), or how many times "
        "as large the first figure is as the second (times).\n",
    ]
    for one in FINDINGS:
        cure = f"Cure: layer `{one.cure}`." if one.cure else "Cure: a change of the model."
        parts.append(f"\n## {one.name}\n\n{one.asks} Part of the wall time: {one.shrinks}. {cure} "
                     f"Figures: `weir report --tables {one.table}`. More: "
                     f"[{title_of(one.page)}](../{one.page}).\n\n")
        parts.append(limits(one.limits))
    return "".join(parts)


def title_of(page: str) -> str:
    """The first heading of a page of docs/."""
    return (ROOT / "docs" / page).read_text().partition("\n")[0].removeprefix("# ")


WIDTH = 100
PAGES: dict[str, Callable[[], str]] = {
    "commands.md": commands, "environment.md": environment, "findings.md": findings,
    "layers.md": layers, "query.md": query, "operations.md": operations, "seen.md": functions,
    "formats.md": formats,
}


def filled(text: str) -> str:
    """The page with its prose broken at 100 columns; tables, code and headings as they are."""
    return "\n".join(
        line if len(line) <= WIDTH or line.startswith(("|", "#", "    ", "<"))
        else textwrap.fill(line, WIDTH, break_long_words=False, break_on_hyphens=False,
            subsequent_indent="  " if line.startswith("- ") else "")
        for line in text.split("\n"))


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print("usage: tools/gen_docs.py [--check]", file=sys.stderr)
        return 2
    stale = []
    for name, page in PAGES.items():
        path, text = OUT / name, filled(page())
        if path.exists() and path.read_text() == text:
            continue
        stale.append(name)
        if not arguments:
            path.write_text(text)
    if arguments and stale:
        print(f"out of date, run `make reference`: {', '.join(stale)}", file=sys.stderr)
    return 1 if arguments and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
