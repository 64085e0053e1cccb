# SPDX-License-Identifier: Apache-2.0
"""Which files are left out: by default, by the user's lists, and never those of the job."""

from __future__ import annotations

import pytest

from weir.analysis.exclusion import Exclusion, exclusion_of

DEFAULT = exclusion_of(environ={})


@pytest.mark.parametrize(
    "name",
    [
        "/usr/lib/x86_64-linux-gnu/openmpi/lib/openmpi3/mca_io_ompio.so",
        "/usr/share/misc/pci.ids",
        "/etc/hosts",
        "/opt/cray/pe/lib64/libmpi.so.12",
        "/sw/python/lib/python3.11/json/decoder.py",
        "/sw/python/lib/python3.11",
        "/scratch/u/env/lib/python3.11/site-packages/numpy/core/x.py",
        "/scratch/u/model/__pycache__/a.cpython-311.pyc",
        "/scratch/u/openmpi/share/openmpi/help-mpi.txt",
        "/scratch/u/.openmpi/components",
        "/scratch/u//.//openmpi/../x.so",
        "/scratch/u/.pyenv/libexec/pyenv-exec",
        "/scratch/u/miniforge/conda-meta/history",
    ],
)
def test_a_file_of_the_system_or_of_an_interpreter_is_left_out(name):
    assert DEFAULT.mask([name]).tolist() == [True]
    assert DEFAULT.word_of(name)


@pytest.mark.parametrize(
    "name",
    [
        "/scratch/usr/out.nc",
        "/usr2/x",
        "/variables/x",
        "/var/tmp/x",
        "/var/opt/cray/dws/mounts/batch/1/out",
        "/scratch/wrfout.solution",
        "/scratch/python3/out.nc",
        "/scratch/lib/python/out.nc",
        "/scratch/my-site-packages/x",
        "pipe:[7]",
        "library:/usr/x.nc:T",
        "(lost name 7 of process 1 on n)",
        "",
    ],
)
def test_a_file_of_the_job_is_counted(name):
    assert DEFAULT.mask([name]).tolist() == [False]


def test_files_below_the_working_directory_are_no_files_of_the_system():
    at = DEFAULT.of_step("/opt/forecast/run")
    names = ["/opt/forecast/run/out.nc", "/opt/forecast/lib.dat", "/opt/forecast/run/venv/a.pyc"]
    assert at.mask(names).tolist() == [False, True, True]
    assert DEFAULT.of_step("/").mask(["/usr/x"]).tolist() == [True]


def test_the_user_s_lists_come_before_the_default():
    lists = {"WEIR_EXCLUDE": "/scratch/static, *.log,restart/",
        "WEIR_INCLUDE": "/usr/share/eccodes"}
    one = exclusion_of(environ=lists)
    names = [
        "/scratch/static/a", "/scratch/static", "/scratch/static2", "/x/a.log", "/x/a.log2",
        "/x/restart/r1", "/x/prestart/r1", "/usr/share/eccodes/def", "/usr/share/x",
    ]  # fmt: skip
    assert one.mask(names).tolist() == [True, True, False, True, False, True, False, False, True]
    assert one.word_of("/x/a.log") == "*.log"


def test_an_option_overrides_the_environment_and_none_the_default_list():
    lists = {"WEIR_EXCLUDE": "/scratch", "WEIR_INCLUDE": "/usr"}
    assert exclusion_of("none", "", lists) == Exclusion(default=False)
    assert not exclusion_of("none", "", lists).leaves_out("/etc/hosts")
    assert exclusion_of("none,/scratch", "", lists).leaves_out("/scratch/x")
    assert not exclusion_of(None, "/", lists).leaves_out("/scratch/x")
    assert exclusion_of("*[a-z].nc", "", lists).leaves_out("/w/a.nc")
    for word, out, left in (
        ("r*", "/w/rst.nc", "/runs/w/out"), ("out*", "/w/out1", "/w/outer/x.nc"),
        ("?.nc", "/w/a.nc", "/w/ab.nc"), ("w/out*", "/w/out/a/b", "/w/in/out"),
        ("[!a]*.nc", "/w/b.nc", "/b/a.nc")):
        one = exclusion_of(word, "", lists)
        assert (one.leaves_out(out), one.leaves_out(left)) == (True, False), word


def test_a_name_that_several_nodes_have_is_judged_once(monkeypatch):
    judged = []
    real = Exclusion.leaves_out
    monkeypatch.setattr(Exclusion, "leaves_out", lambda one, name: judged.append(name)
        or real(one, name))
    exclusion = Exclusion()
    for _ in range(3):
        mask = exclusion.mask(["/usr/lib/x", "/data/x", "/data//x"])
        assert mask.tolist() == [True, False, False]
    assert len(judged) == 3
