# SPDX-License-Identifier: Apache-2.0
"""The native matcher takes all that Python compiles, and patterns, paths and conditions mean what
libc and the guide say."""

from __future__ import annotations

import ctypes
import locale
import os

from hypothesis import given, settings
from hypothesis import strategies as st
from rules_strategies import ELEMENTS, patterns, rule_sets

from weir.rules.forms.compiled import compile_rules
from weir.rules.matching.explain import open_of
from weir.rules.matching.match import Open, misfits
from weir.rules.matching.native import MISFITS, fits, is_compiled
from weir.rules.model import Conditions
from weir.rules.values import normalised


@settings(max_examples=200)
@given(rules=rule_sets)
def test_all_rules_compile_to_a_text_that_is_parsed(rules):
    assert is_compiled(compile_rules(rules)) == bool(rules)


@settings(max_examples=400)
@given(pattern=patterns, name=st.lists(ELEMENTS, max_size=5).map("".join))
def test_patterns_fit_as_with_fnmatch(pattern, name):
    before = locale.setlocale(locale.LC_CTYPE, None)
    locale.setlocale(locale.LC_CTYPE, "C")
    expected = ctypes.CDLL(None).fnmatch(os.fsencode(pattern), os.fsencode(name), 0) == 0
    locale.setlocale(locale.LC_CTYPE, before)
    assert fits(pattern, name) == expected


@settings(max_examples=200)
@given(words=st.lists(st.sampled_from(["a", "b", ".", "..", "", "..."]), max_size=6),
    directory=st.sampled_from(["/", "/x/y", "/x//z/"]))
def test_paths_are_made_absolute_as_text(words, directory):
    path = os.path.join(directory, "/".join(words))
    assert normalised(path) == "/" + os.path.normpath(path).lstrip("/")


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
    assert fortran[0] == "its name is not a" and fortran[
        -1] == "its file system is ext4, not lustre"


def test_a_compiled_text_at_its_limit_is_parsed():
    text = "weir-rules 1\n" + "rule name=a stack=system\n" * 2600
    assert len(text) <= 64 << 10
    assert is_compiled(text) and not is_compiled(text + "rule name=a\n")
