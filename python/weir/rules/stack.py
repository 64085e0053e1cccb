# SPDX-License-Identifier: Apache-2.0
"""Stacks as users write them, ``event | bufa:256:2 | event | system``, to layers and back."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Iterator

from weir.rules.layers import ERRNOS, MOST_DIRECTORIES, MOST_LAYERS, NOTHING, Argument, Kind, kinds
from weir.rules.mistakes import Wrong, listed, near
from weir.rules.model import EVENT, SYSTEM, Conditions, Layer
from weir.rules.values import (
    BLOCK,
    check_dir,
    parse_fraction,
    parse_number,
    parse_size,
    parts,
    size_text,
)

_OF_NAMES = ("name", "path", "dir", "fstype")
_TRUE, _FALSE = ("1", "yes", "true", "on"), ("0", "no", "false", "off")


class StackError(Exception):
    """All that is wrong with one stack."""

    def __init__(self, wrongs: list[Wrong]):
        super().__init__("; ".join(w.message for w in wrongs))
        self.wrongs = wrongs


def parse_stack(text: str) -> tuple[Layer, ...]:
    """The layers, with every default filled in, ending in system. Layers are separated by ``|``, or
    all by commas.

    Raises StackError.
    """
    wrongs: list[Wrong] = []
    if not text.strip():
        raise StackError(
            [Wrong("the stack is empty: name its layers, or none to leave files alone")])
    words = list(_words(text))
    if [w for _, w in words] == [NOTHING]:
        return (SYSTEM,)
    layers: list[tuple[int, Layer]] = []
    for offset, word in words:
        try:
            layers.append((offset, _parse_layer(word)))
        except StackError as error:
            wrongs += [Wrong(w.message, offset + w.offset) for w in error.wrongs]
    wrongs += _order_mistakes(layers)
    if wrongs:
        raise StackError(sorted(wrongs, key=lambda w: w.offset))
    stack = tuple(layer for _, layer in layers)
    return stack if stack[-1] == SYSTEM else (*stack, SYSTEM)


def _words(text: str) -> Iterator[tuple[int, str]]:
    """The layers' texts with their offsets. A comma followed by a slash goes on with a list of
    directories."""
    pattern = r"\|" if "|" in text else r",(?!\s*/)"
    at = 0
    for part in re.split(pattern, text):
        yield at + len(part) - len(part.lstrip()), part.strip()
        at += len(part) + 1


def _order_mistakes(layers: list[tuple[int, Layer]]) -> list[Wrong]:
    wrongs = []
    for index, (offset, layer) in enumerate(layers):
        if layer == SYSTEM and index != len(layers) - 1:
            below = layers[index + 1][1].name
            wrongs.append(Wrong(f"system must be the last layer, but {below} stands below it",
                offset))
        kind, above = kinds()[layer.name], [other.name for _, other in layers[:index]]
        if not kind.repeatable and layer != SYSTEM and layer.name in above:
            wrongs.append(Wrong(f"{layer.name} stands twice in this stack", offset))
        wrongs += [Wrong(mistake, offset) for mistake in _wrong_neighbours(kind, above)]
    if len(layers) > MOST_LAYERS + 1:
        wrongs.append(Wrong(f"a stack has at most {MOST_LAYERS} layers above system",
            layers[MOST_LAYERS][0]))
    return wrongs


def _wrong_neighbours(kind: Kind, above: list[str]) -> Iterator[str]:
    """What is wrong with a layer below those above it, as both declare it."""
    if kind.never_below and (wrong := [name for name in above if name in kind.never_below.layers]):
        yield kind.never_below.mistake.format(above=wrong[0], below=kind.name)
    for name in dict.fromkeys(above):
        only = kinds()[name].only_below
        if only and kind.name not in only.layers:
            yield only.mistake.format(above=name, below=kind.name)


def condition_mistake(when: Conditions, stack: Iterable[Layer]) -> str | None:
    """Why these conditions cannot stand with the layers: a call such as stat has a name alone."""
    by_name = next((layer.name for layer in stack if kinds()[layer.name].found_by_name), None)
    others = [key for key in when.given() if key not in _OF_NAMES]
    if by_name is None or not others:
        return None
    return (f"{by_name} finds files by their names, in opens as in stat and unlink: a rule with it "
            f"cannot have {listed(others)}; its conditions are {listed(_OF_NAMES, 'and')}")


def _parse_layer(word: str) -> Layer:
    """One layer. Raises StackError with offsets in the word."""
    fields = _fields(word)
    name = fields[0][1]
    kind = kinds().get(name.lower())
    if kind is None:
        raise StackError([Wrong(_unknown_layer(name))])
    wrongs: list[Wrong] = []
    args: list[str] = []
    given: dict[str, str] = {}
    for offset, field in fields[1:]:
        try:
            _parse_field(kind, field, args, given)
        except Wrong as wrong:
            wrongs.append(Wrong(wrong.message, offset + wrong.offset))
    wrongs += [Wrong(f"{kind.name} needs option {o.name}, e.g. {o.name}={_example(o)}")
        for o in kind.options
        if o.required and o.name not in given and not wrongs]
    if not wrongs:
        wrongs = _together(kind, given)
    if wrongs:
        raise StackError(wrongs)
    args += [a.default or "0" for a in kind.positional[len(args) :]]
    values = {o.name: given.get(o.name, o.default) for o in kind.options}
    return Layer(kind.name, tuple(int(a) for a in args), tuple((k, v) for k, v in values.items()
        if v is not None))


def _fields(word: str) -> list[tuple[int, str]]:
    found, at = [], 0
    for field in word.split(":"):
        found.append((at + len(field) - len(field.lstrip()), field.strip()))
        at += len(field) + 1
    return found


def _unknown_layer(name: str) -> str:
    if not name:
        return "a layer is missing here"
    if name.lower() == NOTHING:
        return "none means no layer at all: it stands alone"
    for kind in kinds().values():
        if name.lower() in kind.instead_of:
            return f"there is no layer {name!r}; weir's is {kind.name}: {kind.summary}"
    known = list(kinds())
    return f"there is no layer {name!r}" + (near(name, known) or f": choose {listed(known)}")


def _parse_field(kind: Kind, field: str, args: list[str], given: dict[str, str]) -> None:
    name, equals, value = field.partition("=")
    if not equals and not (kind.option(name) and kind.option(name).kind == "flag"):
        if given:
            raise Wrong("arguments without a name come before those with one")
        if len(args) == len(kind.positional):
            most = (
                f"takes {_by_place(kind)} and no more"
                if kind.positional
                else "takes no arguments without a name"
            )
            raise Wrong(f"{field!r} is too many: {kind.name} {most}{_options_hint(kind)}")
        args.append(_parse_value(kind, kind.positional[len(args)], field))
        return
    name = name.strip()
    option = kind.option(name)
    if option is None:
        known = [o.name for o in kind.options]
        if any(a.name == name for a in kind.positional):
            raise Wrong(f"{name} is given by its place: {_by_place(kind)}")
        raise Wrong(f"{kind.name} has no option {name!r}" + (near(name, known)
            or _options_hint(kind)))
    if name in given:
        raise Wrong(f"{name} is given twice")
    at = len(field) - len(value) + len(value) - len(value.lstrip()) if equals else 0
    try:
        given[name] = _parse_value(kind, option, value.strip() if equals else "1")
    except Wrong as wrong:
        raise Wrong(wrong.message, at + wrong.offset) from None


def _by_place(kind: Kind) -> str:
    return ":".join([kind.name, *(a.name for a in kind.positional)])


def _options_hint(kind: Kind) -> str:
    return (
        f"; its options are {listed((o.name for o in kind.options), 'and')}"
        if kind.options
        else ("")
    )


def _example(option: Argument) -> str:
    return {"directories": "/a,/b", "directory": "/a", "file": "out.zip"}.get(option.kind, "...")


def _parse_value(kind: Kind, argument: Argument, text: str) -> str:
    """The compiled form of one value. Raises Wrong."""
    what = f"{kind.name}'s {argument.name}"
    if not text:
        if argument in kind.positional:
            raise Wrong(f"{what} is missing: write {_by_place(kind)}")
        raise Wrong(f"{kind.name}: {argument.name}= needs a value" + (", 0 or 1"
            if argument.kind == "flag" else ""))
    if argument.kind == "fraction":
        return parse_fraction(text)
    if argument.kind == "flag":
        if text.lower() not in _TRUE + _FALSE:
            raise Wrong(f"{what} is 1 or 0, not {text!r}")
        return "1" if text.lower() in _TRUE else "0"
    if argument.kind == "choice":
        if text.lower() not in argument.choices:
            raise Wrong(f"{what} cannot be {text!r}" + (near(text, argument.choices)
                or f": choose {listed(argument.choices)}"))
        return text.lower()
    if argument.kind == "errno":
        return _parse_errno(text)
    if argument.kind == "directories":
        return _parse_directories(text)
    if argument.kind == "file":
        return _parse_file_name(what, text)
    if argument.kind == "directory":
        return check_dir(_decoded(text))
    return str(_parse_amount(argument, what, text))


def _parse_amount(argument: Argument, what: str, text: str) -> int:
    if argument.kind == "count":
        value, show = parse_number(text), str
    else:
        value, show = parse_size(text, BLOCK if argument.kind == "size" else 1), size_text
    if value < argument.low:
        raise Wrong(f"{what} is at least {show(argument.low)}, not {show(value)}")
    if value > argument.high:
        raise Wrong(f"{what} is at most {show(argument.high)}, not {show(value)}")
    if argument.kind == "size" and value % argument.step:
        rounded = (value // argument.step + 1) * argument.step
        step = size_text(argument.step).replace("KiB", " KiB")
        raise Wrong(f"{what} is a multiple of {step}, not {value} bytes: write {rounded // BLOCK} "
                    f"or {size_text(rounded)}")
    return value


def _parse_errno(text: str) -> str:
    known = sorted(set().union(*ERRNOS.values()))
    if text.isascii() and text.isdigit():
        text = errno.errorcode.get(int(text), text)
    if text.upper() not in known:
        raise Wrong(f"there is no errno {text!r} that a file's calls document" + near(text.upper(),
            known).replace("mean e", "mean E"))
    return text.upper()


def _parse_directories(text: str) -> str:
    directories = []
    for offset, part in parts(text):
        try:
            directories.append(check_dir(_decoded(part)))
        except Wrong as wrong:
            raise Wrong(wrong.message, offset) from None
    if len(directories) < 2:
        raise Wrong("stripe needs two directories or more")
    if len(directories) > MOST_DIRECTORIES:
        raise Wrong(f"stripe takes {MOST_DIRECTORIES} directories at most, not {len(directories)}")
    if len(set(directories)) != len(directories):
        raise Wrong("a directory stands twice in this list")
    if any("," in directory for directory in directories):
        raise Wrong("a directory of stripe has no comma in its name")
    return ",".join(directories)


def _parse_file_name(what: str, text: str) -> str:
    """The name of an archive, which lies where the files would."""
    if "/" in text:
        raise Wrong(f"{what} is a file name without a directory: the container lies in the "
                    f"directory of the files, write {text.rpartition('/')[2] or 'out.zip'}")
    if not text.endswith(".zip") or len(text) < 5 or "@" in text or len(text.encode()) > 100:
        raise Wrong(f"{what} ends in .zip, has no @ and at most 100 bytes, not {text!r}")
    return text


def _decoded(text: str) -> str:
    return re.sub(r"%([0-9A-Fa-f]{2})", lambda m: chr(int(m[1], 16)), text)


def _together(kind: Kind, given: dict[str, str]) -> list[Wrong]:
    """What is wrong with values only together."""
    op, errno = given.get("op", "any"), given.get("errno", "EIO")
    if kind.name == "error" and errno not in ERRNOS[op]:
        which = sorted(name for name, errnos in ERRNOS.items() if errno in errnos)
        return [Wrong(f"op={op} cannot fail with {errno}: choose op={listed(which)}, or "
                      f"{listed(sorted(ERRNOS[op]))}")]
    if "first" in given and "last" in given and int(given["first"]) > int(given["last"]):
        return [Wrong("the range ends before it begins: last is less than first")]
    return []


def stack_text(stack: tuple[Layer, ...], separator: str = " | ") -> str:
    """A stack as a user writes it; parse_stack() of it gives the same stack."""
    return separator.join(layer_text(layer) for layer in stack)


def layer_text(layer: Layer) -> str:
    """Sizes in blocks where that is shorter to read: as FFIO's users know them."""
    kind = kinds()[layer.name]
    words = [layer.name]
    for argument, value in zip(kind.positional, layer.args, strict=True):
        words.append(size_text(value) if argument.kind == "size" else str(value))
    for name, value in layer.options:
        option = kind.option(name)
        if value != option.default:
            words.append(f"{name}={_option_text(option, value)}")
    return ":".join(words)


def _option_text(option: Argument, value: str) -> str:
    if option.kind == "size":
        return size_text(int(value))
    if option.kind in ("directories", "directory"):
        return re.sub(r"[%:|]", lambda m: f"%{ord(m[0]):02X}", value)
    return value


def with_events(stack: tuple[Layer, ...]) -> tuple[Layer, ...]:
    """The stack as it is traced: above all layers and below them, unless it has event layers of its
    own or exempts the file."""
    if EVENT in stack or stack == (SYSTEM,):
        return stack
    return (EVENT, *stack[:-1], EVENT, SYSTEM)
