# SPDX-License-Identifier: Apache-2.0
"""Levels, budgets and LD_PRELOAD values."""

from __future__ import annotations

import pytest

from weir import UsageError
from weir.capture._environment import (
    LEVELS,
    VARIABLES,
    check_level,
    forwarded_names,
    idle_environment,
    parse_budget,
    tracing_variables,
    with_library,
    without_library,
)

LIBRARY = "/opt/weir/libweir-preload.so"


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("65536", 65536),
        ("64K", 65536),
        ("64k", 65536),
        ("512M", 512 << 20),
        ("4G", 4 << 30),
        ("4GB", 4 << 30),
        ("4GiB", 4 << 30),
        (" 1T ", 1 << 40),
    ],
)
def test_budget_is_bytes_or_powers_of_1024(text, size):
    assert parse_budget(text) == size


@pytest.mark.parametrize("text", ["", "G", "4 G", "-4G", "1.5G", "4X", "0x10000", "4GG", "iB", "B",
    "٤G", "63K", "0", "8388608T"])
def test_budget_that_makes_no_sense_is_refused_by_name(text):
    with pytest.raises(UsageError, match=r"^--budget "):
        parse_budget(text)


def test_levels_are_three_and_no_other():
    assert [check_level(level) for level in LEVELS] == ["summary", "detail", "trace"]
    for level in ("", "Trace", "off", "all"):
        with pytest.raises(UsageError, match="summary, detail, trace"):
            check_level(level)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", LIBRARY),
        ("/a/libx.so", f"{LIBRARY}:/a/libx.so"),
        ("/a/libx.so /b/liby.so", f"{LIBRARY}:/a/libx.so:/b/liby.so"),
        (LIBRARY, LIBRARY),
        (f"/a/libx.so:{LIBRARY}", f"{LIBRARY}:/a/libx.so"),
        ("/elsewhere/libweir-preload.so:/a/libx.so", f"{LIBRARY}:/a/libx.so"),
        ("::", LIBRARY),
    ],
)
def test_the_library_comes_first_and_once(before, after):
    assert with_library(before, LIBRARY) == after
    assert with_library(after, LIBRARY) == after
    assert LIBRARY not in without_library(after)


def test_idle_environment_has_nothing_of_an_outer_launch():
    before = {"HOME": "/x", "LD_PRELOAD": "/a/libx.so", "WEIR_MPI_SYNC": "4"}
    traced = {**before, **tracing_variables(before, LIBRARY, "/run/a", "detail", 1 << 20)}
    assert traced["LD_PRELOAD"] == f"{LIBRARY}:/a/libx.so" and traced["WEIR_BUDGET"] == "1048576"
    assert idle_environment(traced) == before
    assert idle_environment({"LD_PRELOAD": LIBRARY}) == {}


def test_what_belongs_to_one_node_is_not_carried_to_others():
    names = forwarded_names({v.name: "1" for v in VARIABLES} | {"LD_PRELOAD": LIBRARY,
        "HOME": "/x"})
    assert names[0] == "LD_PRELOAD" and "WEIR_TRACE_DIR" in names and "WEIR_QUIET" in names
    assert not {"WEIR_NODE", "WEIR_CLOCK_SKEW_NS", "HOME"} & set(names)
    assert forwarded_names({"WEIR_LEVEL": "trace"}) == ["WEIR_LEVEL"]
