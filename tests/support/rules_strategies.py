# SPDX-License-Identifier: Apache-2.0
"""Random rules and opens that meet often: few letters, few numbers, all keys."""

from __future__ import annotations

from hypothesis import strategies as st

from weir.rules.layers import ERRNOS, kinds
from weir.rules.matching.match import Open
from weir.rules.mistakes import Place
from weir.rules.model import ACCESSES, FORMS, MODES, SYSTEM, Conditions, Hints, Layer, Rule, RuleSet
from weir.rules.stack import StackError, condition_mistake, parse_stack
from weir.rules.values import join_ranges

WORDS = st.sampled_from(["a", "b", "ab", "x.nc", "a b", "ü%", "10", "-", "'q\"", "tr,a:j"])
ELEMENTS = st.sampled_from(["a", "b", ".nc", "*", "*", "?", "[ab]", "[!a]", "[[:digit:]]", "\\*",
    " ", "%", "ü", "'", '"', ",", ":", "_"])
patterns = st.lists(ELEMENTS, min_size=1, max_size=4).map("".join)
file_systems = st.sampled_from(["ext4", "lustre", "nfs", "fuse", "fuse.x", "tmpfs"])
numbers = st.integers(0, 9)
ranges = st.lists(st.tuples(numbers, numbers).map(lambda p: (min(p), max(p))), min_size=1,
    max_size=3).map(join_ranges)
sizes = st.sampled_from([0, 1, 10, 4096, 1 << 20, 1 << 40, 12345])
directories = st.lists(st.sampled_from(["a", "b", "a b", "ü%"]), min_size=0,
    max_size=2).map(lambda w: "/" + "/".join(w))
paths = st.tuples(st.sampled_from(["/", "/*/", "*", "/a/"]), patterns).map("".join)


def some_of(words: tuple[str, ...]) -> st.SearchStrategy[tuple[str, ...]]:
    """A few of the words, in their order, at least one."""
    return st.sets(st.sampled_from(words), min_size=1, max_size=3).map(lambda chosen: tuple(w
        for w in words if w in chosen))


@st.composite
def conditions(draw, keys=tuple(Conditions.__dataclass_fields__)) -> Conditions:
    values = {
        "name": patterns, "path": paths, "dir": directories,
        "fstype": st.lists(file_systems, min_size=1, max_size=2, unique=True).map(tuple),
        "unit": ranges, "access": st.sampled_from(ACCESSES), "form": st.sampled_from(FORMS),
        "mode": some_of(MODES),
        "min_size": sizes, "max_size": sizes, "ranks": ranges,
    }  # fmt: skip
    chosen = draw(st.sets(st.sampled_from(keys), max_size=3))
    found = {key: draw(values[key]) for key in chosen}
    low, high = found.get("min_size"), found.get("max_size")
    if low is not None and high is not None and low > high:
        del found["max_size"]
    return Conditions(**found)


@st.composite
def layers(draw) -> Layer:
    kind = kinds()[draw(st.sampled_from(sorted(set(kinds()) - {"system"})))]
    args = tuple(draw(st.sampled_from([4096, 8192, 1 << 20])) if a.kind == "size"
        else draw(st.integers(1, 16)) for a in kind.positional)
    options = {}
    for option in kind.options:
        given = option.required or draw(st.booleans())
        value = draw(_option(option)) if given else option.default
        if value is not None:
            options[option.name] = value
    if kind.name == "error":
        options["errno"] = draw(st.sampled_from(sorted(ERRNOS[options["op"]])))
    if int(options.get("first", 0)) > int(options.get("last", 1 << 62)):
        del options["last"]
    return Layer(kind.name, args, tuple((o.name, options[o.name]) for o in kind.options
        if o.name in options))


def _option(option) -> st.SearchStrategy[str]:
    if option.kind == "file":
        return st.sampled_from(["a.zip", "a b.zip", "ü:e|f.zip"])
    if option.kind == "directory":
        return st.sampled_from(["/a", "/a b/c:d", "/e|f", "/ü%20"])
    if option.kind == "directories":
        return st.sampled_from(["/a,/b", "/a b,/c:d,/e|f", "/ü%20,/y"])
    if option.kind == "size":
        return st.sampled_from([str(option.step), "1048576"])
    return {
        "bytes": st.integers(1, 1 << 20).map(str), "count": st.integers(max(1, option.low),
            min(4096, option.high)).map(str), "flag": st.sampled_from(["0", "1"]),
        "fraction": st.sampled_from(["0", "0.01", "0.5", "1"]),
        "choice": st.sampled_from(option.choices or ("any",)),
        "errno": st.just("EIO"),
    }[option.kind]  # fmt: skip


def is_stack(layers_: list[Layer]) -> bool:
    from weir.rules.stack import stack_text

    try:
        parse_stack(stack_text((*layers_, SYSTEM)))
    except StackError:
        return False
    return True


stacks = st.lists(layers(), max_size=3).filter(is_stack).map(lambda chosen: (*chosen, SYSTEM))
bufa_stacks = st.sampled_from(["bufa", "bufa:2:3", "bufa:5:1:direct=1",
    "event|bufa:1MiB:4|event"]).map(parse_stack)
infos = st.lists(
    st.tuples(st.sampled_from(["cb_nodes", "striping_factor", "romio_cb_write"]),
        st.sampled_from(["1", "enable", "*:1", "a;b=c", "x y"])),
    min_size=1, max_size=3, unique_by=lambda pair: pair[0],
).map(tuple)  # fmt: skip


def _go_together(pair) -> bool:
    return condition_mistake(*pair) is None


def _place(number: int) -> Place:
    return Place("random", number)


rule_sets = st.builds(
    lambda rules, hints: RuleSet(
        tuple(Rule(_place(i), when, stack) for i, (when, stack) in enumerate(rules)),
        tuple(Hints(_place(100 + i), when, info) for i, (when, info) in enumerate(hints)),
    ),
    st.lists(st.tuples(conditions(), stacks).filter(_go_together), max_size=6),
    st.lists(st.tuples(conditions(("name", "path", "dir", "fstype", "mode", "ranks", "min_size",
        "max_size")), infos), max_size=3),
)
simple_rule_sets = st.lists(st.tuples(conditions(("name",)), bufa_stacks), max_size=5).map(
    lambda rules: RuleSet(tuple(Rule(_place(i), when, stack)
        for i, (when, stack) in enumerate(rules)))
)


@st.composite
def opens(draw) -> Open:
    words = draw(st.lists(WORDS, min_size=1, max_size=4))
    modes = {draw(st.sampled_from(["read", "write", "readwrite"]))} | draw(st
        .sets(st.sampled_from(["append", "create", "truncate"])))
    fortran = draw(st.booleans())
    known = {
        "unit": draw(st.none() | numbers), "access": draw(st.none() | st.sampled_from(ACCESSES)),
        "form": draw(st.none() | st.sampled_from(FORMS)),
    } if fortran else {}  # fmt: skip
    return Open(
        "/" + "/".join(words), frozenset(modes), rank=draw(st.none() | numbers), fortran=fortran,
        size=draw(sizes), fstype=draw(file_systems | st.just("")), **known,
    )  # fmt: skip
