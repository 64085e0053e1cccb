#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Read the declarations of layers and write what is made from them.

    tools/layers.py OUT

CMake runs this when it configures. Files that would not change are left alone. From
native/layers/<name>/layer.toml OUT gets:

    layers/<name>/declared.h    places and defaults of arguments, statistics
    layers/kinds.def            all layers, for the preload library
    wire/layers.def             names of layers and statistics, for the reader
    layers.cmake                directories of layers
    layers.json                 arguments and statistics, for the Python package

What several layers share is declared in shared.toml of a directory that is no layer. In a list,
`{ from = "chance" }` stands for all that it declares, with `names = ["op"]` for some of it.
docs/extending.md explains the keys. Needs Python 3.11, or 3.10 with tomli.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LAYERS = Path(__file__).resolve().parents[1] / "native" / "layers"
LARGEST = (1 << 63) - 1
BLOCK = 4096
MOST_LAYERS = MOST_STATISTICS = 32  # of the trace's format
SHIFTS = {"KiB": 10, "MiB": 20, "GiB": 30}
NAME = re.compile(r"[a-z][a-z0-9_]*")
AMOUNTS = ("size", "bytes", "count")
UNITS = ("requests", "bytes", "ns", "times", "blocks")
# Keys of each table with their types.
ARGUMENT = {
    "name": str,
    "kind": str,
    "help": str,
    "default": (str, int),
    "otherwise": (str, int),
    "low": (str, int),
    "high": (str, int),
    "choices": list,
    "required": bool,
    "step": (str, int),
}
STATISTIC = {"index": int, "name": str, "unit": str, "help": str}
MEMORY = {"of": list, "per": str, "twice_if": str, "multiple": int, "multiple_per": str}
TESTS = {"sequences": dict, "flavours": list, "requests": dict, "needs_close": bool}
SHARED = {"options": list, "statistics": list}
LAYER = {
    **SHARED,
    "number": int,
    "order": int,
    "summary": str,
    "arguments": list,
    "memory": dict,
    "repeatable": bool,
    "transforms": bool,
    "one_opening": bool,
    "found_by_name": bool,
    "static": bool,
    "instead_of": list,
    "never_below": dict,
    "only_below": dict,
    "sweep": str,
    "tests": dict,
}
KINDS = (*AMOUNTS, "fraction", "flag", "choice", "errno", "directories", "directory", "file")


class Mistake(Exception):
    """A declaration that says something impossible."""


def amount(value: str | int) -> int:
    """A number, or a text such as 64KiB, as a number."""
    if isinstance(value, int):
        return value
    found = re.fullmatch(r"(\d+)(KiB|MiB|GiB)?", value)
    if not found:
        raise Mistake(f"{value!r} is not a number, or one with KiB, MiB or GiB")
    return int(found[1]) << SHIFTS.get(found[2], 0)


def check_keys(table: dict, known: dict[str, Any], needed: tuple[str, ...], what: str) -> None:
    for key, value in table.items():
        if key not in known:
            raise Mistake(f"{what} has no key {key!r}: choose from {', '.join(known)}")
        if not isinstance(value, known[key]) or isinstance(value, bool) and known[key] is not bool:
            raise Mistake(f"{what}: {key} cannot be {value!r}")
    if missing := [key for key in needed if key not in table]:
        raise Mistake(f"{what} needs {', '.join(missing)}")


def argument(table: dict) -> dict[str, Any]:
    """One argument with all its bounds; ``default`` as it stands in compiled rules."""
    what = f"argument {table.get('name', '?')}"
    check_keys(table, ARGUMENT, ("name", "kind", "help"), what)
    if not NAME.fullmatch(table["name"]) or table["kind"] not in KINDS:
        raise Mistake(
            f"{what}: a name has small letters, and the kind is one of {', '.join(KINDS)}"
        )
    low = amount(table.get("low", BLOCK if table["kind"] == "size" else 0))
    high = amount(table.get("high", LARGEST))
    if table["kind"] in AMOUNTS:
        for key in "default", "otherwise":
            if key in table and not low <= amount(table[key]) <= high:
                raise Mistake(f"{what}: {key} lies outside of its bounds")

    def text(key: str) -> str | None:
        value = table.get(key)
        if value is None:
            return None
        return str(amount(value) if table["kind"] in AMOUNTS else value)

    return {
        "name": table["name"],
        "kind": table["kind"],
        "default": text("default"),
        "otherwise": text("otherwise"),
        "help": table["help"],
        "low": low,
        "high": high,
        "choices": table.get("choices", []),
        "required": table.get("required", False),
        "step": amount(table.get("step", BLOCK)),
    }


def expanded(rows: list[dict], key: str, directory: Path) -> list[dict]:
    """The rows with those of other directories in the place of ``{ from = ... }``."""
    found = []
    for row in rows:
        if "from" not in row:
            found.append(row)
            continue
        path = directory / row["from"] / "shared.toml"
        if not path.is_file():
            raise Mistake(f"there is no {path.relative_to(directory)} to take {key} from")
        shared = [
            one
            for one in tomllib.loads(path.read_text()).get(key, [])
            if one["name"] in row.get("names", [one["name"]])
        ]
        if not shared:
            raise Mistake(f"{path.relative_to(directory)} declares no such {key}")
        found += shared
    return found


def check_statistics(rows: list[dict]) -> None:
    for row in rows:
        check_keys(row, STATISTIC, tuple(STATISTIC), f"statistic {row.get('name', '?')}")
        if not NAME.fullmatch(row["name"]) or row["unit"] not in UNITS:
            raise Mistake(
                f"statistic {row['name']}: a name has small letters, "
                f"and the unit is one of {', '.join(UNITS)}"
            )
    if (
        sorted(row["index"] for row in rows) != list(range(len(rows)))
        or len(rows) > MOST_STATISTICS
    ):
        raise Mistake(
            f"the indexes of statistics are 0, 1, 2, ..., at most {MOST_STATISTICS - 1}, each once"
        )


def read_layer(path: Path) -> dict[str, Any]:
    """One layer.toml, checked, with what it shares. Raises Mistake."""
    table, name = tomllib.loads(path.read_text()), path.parent.name
    check_keys(table, LAYER, ("number", "summary"), "a layer")
    if not NAME.fullmatch(name):
        raise Mistake("the name of a layer's directory has small letters, digits and _")
    if not 0 < table["number"] < MOST_LAYERS:
        raise Mistake(f"the number of a layer is 1 to {MOST_LAYERS - 1}")
    raw = {
        key: expanded(table.get(key, []), key, path.parents[1])
        for key in ("arguments", "options", "statistics")
    }
    found = {**table, "name": name, "raw": raw, "statistics": raw["statistics"]}
    found |= {key: [argument(row) for row in raw[key]] for key in ("arguments", "options")}
    check_statistics(found["statistics"])
    check_keys(table.get("tests", {}), TESTS, (), "tests")
    if any(one["kind"] not in AMOUNTS or one["default"] is None for one in found["arguments"]):
        raise Mistake("an argument without a name is a size, bytes or count, and has a default")
    known = {one["name"] for one in found["arguments"]}
    memory = table.get("memory")
    if memory is not None:
        check_keys(memory, MEMORY, ("of", "per"), "memory")
        if not memory["of"] or not set(memory["of"]) <= known:
            raise Mistake("memory.of is a list of names of arguments, whose product it is")
        if ("multiple" in memory) != ("multiple_per" in memory):
            raise Mistake("memory.multiple and memory.multiple_per belong together")
    return found


def read_layers(directory: Path = LAYERS) -> list[dict[str, Any]]:
    """All layers in the order of lists: by ``order``, or else by number. Raises Mistake."""
    layers: list[dict[str, Any]] = []
    for path in sorted(directory.glob("*/layer.toml")):
        try:
            layer = read_layer(path)
            for other in layers:
                if other["number"] == layer["number"]:
                    raise Mistake(f"number {layer['number']} is {other['name']}'s")
        except (Mistake, tomllib.TOMLDecodeError) as error:
            raise Mistake(f"{path}: {error}") from None
        layers.append(layer)
    return sorted(layers, key=lambda layer: (layer.get("order", layer["number"]), layer["number"]))


def constant(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def made(comment: str = "//") -> str:
    return (
        f"{comment} SPDX-License-Identifier: Apache-2.0\n"
        f"{comment} Made by tools/layers.py from native/layers; not to be edited.\n"
    )


def statistics_text(rows: list[dict]) -> str:
    lines = [
        f"  k{constant(row['name'])} = {row['index']},  // {row['unit']}: {row['help']}\n"
        for row in rows
    ]
    return "enum Statistic : uint32_t {\n" + "".join(lines) + f"  kStatistics = {len(rows)},\n}};\n"


def limits_text(raw: dict[str, list[dict]]) -> str:
    """Places, defaults and upper bounds of arguments."""
    lines = [
        f"inline constexpr uint32_t kArgument{constant(a['name'])} = {i};\n"
        for i, a in enumerate(raw["arguments"])
    ]
    for row in (*raw["arguments"], *raw["options"]):
        if row["kind"] not in AMOUNTS:
            continue
        default = row.get("default", row.get("otherwise"))
        for word, value in (("Default", default), ("Largest", row.get("high"))):
            if value is not None:
                lines.append(
                    f"inline constexpr uint64_t k{word}{constant(row['name'])} = {amount(value)};\n"
                )
    return "".join(lines)


def header(name: str, body: str, kind: str = "") -> str:
    include = '#include "layers/machinery/stack/layer.h"\n\n' if kind else ""
    return (
        f"{made()}#pragma once\n\n#include <stdint.h>\n\n{include}"
        f"namespace weir::layers {{\n\n{kind}"
        f"namespace {name}_declared {{\n\n{body}\n"
        f"}}  // namespace {name}_declared\n}}  // namespace weir::layers\n"
    )


def layer_header(layer: dict) -> str:
    body = (
        f'inline constexpr char kName[] = "{layer["name"]}";\n'
        + limits_text(layer["raw"])
        + statistics_text(layer["statistics"])
    )
    return header(
        layer["name"], body, f"extern WEIR_OWN const stack::Kind k{constant(layer['name'])};\n\n"
    )


def shared_header(path: Path) -> str:
    table = tomllib.loads(path.read_text())
    check_keys(table, SHARED, (), "what layers share")
    check_statistics(table.get("statistics", []))
    return header(
        path.parent.name,
        limits_text({"arguments": [], "options": table.get("options", [])})
        + statistics_text(table.get("statistics", [])),
    )


def wire_table(layers: list[dict]) -> str:
    lines = [f'WEIR_LAYER({one["number"]}, "{one["name"]}")\n' for one in layers]
    lines += [
        f'WEIR_STATISTIC({one["number"]}, {s["index"]}, "{s["name"]}", "{s["unit"]}")\n'
        for one in layers
        for s in one["statistics"]
    ]
    return f"{made()}// The layers of the trace, and what each counts per file.\n" + "".join(lines)


def kinds_table(layers: list[dict]) -> str:
    """STATIC: also in the archive for programs that are linked statically."""
    macros = (
        f"WEIR_{'STATIC_' if one.get('static') else ''}KIND(k{constant(one['name'])})\n"
        for one in layers
    )
    return made() + "".join(macros)


def cmake_lists(layers: list[dict]) -> str:
    static = [one for one in layers if one.get("static")]
    every, alone = (
        " ".join(f"layers/{one['name']}" for one in chosen) for chosen in (layers, static)
    )
    return made("#") + f"set(WEIR_LAYERS {every})\nset(WEIR_STATIC_LAYERS {alone})\n"


def package_table(layers: list[dict]) -> str:
    """For weir.rules.layers: all but what only C++ and the tests need."""
    left_out = {"raw", "tests", "static", "order"}
    return (
        json.dumps(
            [{k: v for k, v in one.items() if k not in left_out} for one in layers],
            indent=1,
            sort_keys=True,
        )
        + "\n"
    )


def write(path: Path, text: str) -> None:
    if path.exists() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def generate(out: Path, directory: Path = LAYERS) -> None:
    layers = read_layers(directory)
    by_number = sorted(layers, key=lambda layer: layer["number"])
    for layer in layers:
        write(out / "layers" / layer["name"] / "declared.h", layer_header(layer))
    for path in directory.glob("*/shared.toml"):
        write(out / "layers" / path.parent.name / "declared.h", shared_header(path))
    write(out / "layers" / "kinds.def", kinds_table(by_number))
    write(out / "wire" / "layers.def", wire_table(by_number))
    write(out / "layers.cmake", cmake_lists(by_number))
    write(out / "layers.json", package_table(layers))


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("usage: tools/layers.py OUT", file=sys.stderr)
        return 2
    try:
        generate(Path(arguments[0]))
    except Mistake as mistake:
        print(mistake, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
