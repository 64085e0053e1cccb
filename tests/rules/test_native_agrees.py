# SPDX-License-Identifier: Apache-2.0
"""The matcher by which the preload library chooses a rule, and its explanation of each rule, give the same answers."""

from __future__ import annotations

import ctypes
import locale
import os
import random
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rules_strategies import ELEMENTS, opens, patterns, rule_sets
from weir_process import clean_environment

from weir.rules.forms.compiled import compile_rules
from weir.rules.matching.explain import open_of
from weir.rules.matching.match import FLAGS, Open, first_match, misfits
from weir.rules.matching.native import MISFITS, fits
from weir.rules.mistakes import Place
from weir.rules.model import ACCESSES, FORMS, MODES, SYSTEM, Conditions, Rule, RuleSet
from weir.rules.values import join_ranges, normalised

SYSTEMS = ("ext4", "lustre", "fuse", "fuse.x", "tmpfs")

class Matcher:
    """native/layers/machinery/rules, asked through its test program."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=clean_environment())

    def ask(self, *words: object) -> str:
        encoded = ["".join(f"%{b:02X}" for b in os.fsencode(str(w))) or "-" for w in words[1:]]
        self.process.stdin.write(" ".join([str(words[0]), *encoded]).encode() + b"\n")
        self.process.stdin.flush()
        return os.fsdecode(self.process.stdout.readline()).rstrip("\n")

    def open(self, what: Open) -> tuple[int, int]:
        flags = sum(FLAGS[mode] for mode in what.modes)
        answer = self.ask(
            "open", what.path, flags, -1 if what.rank is None else what.rank, int(what.fortran), -1 if what.unit is None else what.unit,
            0 if what.access is None else ACCESSES.index(what.access) + 1, 0 if what.form is None else FORMS.index(what.form) + 1,
            what.size, what.fstype,
        )  # fmt: skip
        rule, hints = answer.split()
        return int(rule), int(hints)

    def close(self) -> None:
        self.process.stdin.close()
        assert self.process.wait(timeout=10) == 0


@pytest.fixture(scope="module")
def matcher(native_build):
    program = native_build / "native" / "layers" / "machinery" / "rules" / "weir_rules_ask"
    native = Matcher(program)
    yield native
    native.close()


def index_of(given_rules, one) -> int:
    return -1 if one is None else given_rules.index(one)


@settings(max_examples=100, deadline=None, print_blob=True)
@given(rules=rule_sets, asked=st.lists(opens(), min_size=1, max_size=12))
def test_every_open_gets_the_same_rule_and_hints(matcher, rules, asked):
    assert matcher.ask("rules", compile_rules(rules)) == f"ok {len(rules.rules)} {len(rules.hints)}"
    for what in asked:
        expected = index_of(rules.rules, first_match(rules.rules, what)), index_of(rules.hints, first_match(rules.hints, what))
        assert matcher.open(what) == expected, (rules, what)


@settings(max_examples=400, deadline=None, print_blob=True)
@given(pattern=patterns, name=st.lists(ELEMENTS, max_size=5).map("".join))
def test_patterns_fit_as_with_fnmatch(pattern, name):
    before = locale.setlocale(locale.LC_CTYPE, None)
    locale.setlocale(locale.LC_CTYPE, "C")
    expected = ctypes.CDLL(None).fnmatch(os.fsencode(pattern), os.fsencode(name), 0) == 0
    locale.setlocale(locale.LC_CTYPE, before)
    assert fits(pattern, name) == expected


@settings(max_examples=200, deadline=None, print_blob=True)
@given(words=st.lists(st.sampled_from(["a", "b", ".", "..", "", "..."]), max_size=6), directory=st.sampled_from(["/", "/x/y", "/x//z/"]))
def test_paths_are_made_absolute_the_same_way(matcher, words, directory):
    path = "/".join(words)
    assert matcher.ask("absolute", directory, path) == normalised(os.path.join(directory, path))


def random_conditions(rng: random.Random) -> Conditions:
    def ranges():
        return join_ranges([tuple(sorted(rng.choices(range(10), k=2))) for _ in range(rng.randint(1, 2))])

    def pattern():
        return "".join(rng.choices(["a", "b", ".nc", "*", "*", "?", "[ab]", "[!a]", "[[:digit:]]", " ", "ü", "x"], k=rng.randint(1, 4)))

    values = {
        "name": pattern, "path": lambda: rng.choice(["/*/", "*", "/a/", "/a*"]) + pattern(), "dir": lambda: rng.choice(["/", "/a", "/a/b"]),
        "fstype": lambda: tuple(rng.sample(SYSTEMS, 2)), "unit": ranges, "access": lambda: rng.choice(ACCESSES),
        "form": lambda: rng.choice(FORMS), "mode": lambda: tuple(rng.sample(MODES, 2)), "ranks": ranges,
        "min_size": lambda: rng.choice([0, 1, 4096]), "max_size": lambda: rng.choice([4096, 8192]),
    }  # fmt: skip
    return Conditions(**{key: values[key]() for key in rng.sample(list(values), rng.randint(0, 2))})


def random_open(rng: random.Random) -> Open:
    words = ["".join(rng.choices(["a", "b", ".nc", "x", "7", " ", "ü"], k=rng.randint(1, 3))) for _ in range(rng.randint(1, 3))]
    fortran = rng.random() < 0.5
    known = {
        "unit": rng.choice([None, *range(10)]), "access": rng.choice([None, *ACCESSES]), "form": rng.choice([None, *FORMS]),
    } if fortran else {}  # fmt: skip
    modes = {rng.choice(MODES[:3]), *(m for m in MODES[3:] if rng.random() < 0.3)}
    return Open(
        "/" + "/".join(words), frozenset(modes), rank=rng.choice([None, *range(10)]), fortran=fortran,
        size=rng.choice([0, 1, 4095, 4096, 8192, 8193]), fstype=rng.choice([*SYSTEMS, ""]), **known,
    )  # fmt: skip


def test_a_great_many_opens_get_the_same_rule(matcher):
    seed = int(os.environ.get("WEIR_TEST_SEED", random.randrange(1 << 32)))
    print(f"WEIR_TEST_SEED={seed}")
    rng = random.Random(seed)
    asked = matched = 0
    for _ in range(300):
        rules = RuleSet(tuple(Rule(Place("random", i), random_conditions(rng), (SYSTEM,)) for i in range(rng.randint(1, 6))))
        matcher.ask("rules", compile_rules(rules))
        for what in [random_open(rng) for _ in range(30)]:
            expected = index_of(rules.rules, first_match(rules.rules, what))
            assert matcher.open(what) == (expected, -1), (rules, what)
            asked, matched = asked + 1, matched + (expected >= 0)
    assert asked == 9000 and 0.2 < matched / asked < 0.95, "one answer alone would say little"


def test_a_file_is_found_with_its_size_and_file_system(tmp_path):
    (tmp_path / "there").write_bytes(b"x" * 12345)
    assert open_of(str(tmp_path / "there")).size == 12345
    assert open_of(str(tmp_path / "there"), ["write", "truncate"]).size == 0
    assert open_of("/proc/self/status").fstype == "proc"
    assert open_of("/dev/shm/not-there").fstype == "tmpfs"
    assert open_of("/no/such/directory/x").fstype == ""


def test_every_condition_that_does_not_hold_is_explained():
    when = Conditions(
        name="a", path="/b", dir="/c", fstype=("lustre",), unit=((1, 2),), access="direct",
        form="formatted", mode=("append",), min_size=4096, ranks=((0, 3),),
    )  # fmt: skip
    assert len(misfits(when, Open("/x"))) == len(MISFITS) - 3
    fortran = misfits(when, Open("/x", fortran=True, rank=7, unit=7, fstype="ext4"))
    assert len(fortran) == len(MISFITS) - 1
    assert fortran[0] == "its name is not a" and fortran[-1] == "its file system is ext4, not lustre"


def test_a_compiled_text_at_its_limit_is_parsed(matcher):
    text = "weir-rules 1\n" + "rule name=a stack=system\n" * 2600
    assert len(text) <= 64 << 10
    assert matcher.ask("rules", text) == "ok 2600 0"
