# SPDX-License-Identifier: Apache-2.0
"""weir output check"""

from __future__ import annotations

import pytest

from weir import _native


@pytest.fixture(autouse=True)
def _built():
    if not (_native.library_directory() / _native.OUTPUT_CHECK).exists():
        pytest.skip("libweir's parser is not built: cmake says which package it needs")


def test_a_configuration_is_explained(weir, tmp_path):
    path = tmp_path / "o.toml"
    path.write_text('[output]\nmode = "servers"\ngroups = 2\n[stream.history]\nevery_s = 21600\n')
    done = weir("output", "check", path, "--ranks", "34",
        env={"WEIR_OUTPUT_SERVERS_PER_GROUP": "2"}).ok()
    assert "mode           servers: 2 groups of 2 servers, one writer in each group" in done.stdout
    assert "ranks          34: 30 compute, 4 ranks serve" in done.stdout
    assert "environment    WEIR_OUTPUT_SERVERS_PER_GROUP=2" in done.stdout
    assert "stream history\n  every        6 hours" in done.stdout


def test_a_namelist_is_explained(weir, tmp_path):
    path = tmp_path / "namelist.input"
    path.write_text("&time_control\n history_interval = 60, 15\n io_form_history = 2\n/\n")
    done = weir("output", "check", path).ok()
    assert "stream history_d02, if the program has it\n  every        15 minutes" in done.stdout


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[output]\ngroup = 2\n',
            "o.toml:2:1: [output] has no key 'group'; did you mean 'groups'?"),
        ('[output]\nmode = "servers"\ngroups = 9\n', "only 4 ranks; at least one must compute"),
        ("&namelist_quilt nio_group = 2 /", "did you mean 'nio_groups'?"),
    ],
)
def test_a_mistake_is_reported_with_status_3(weir, tmp_path, text, says):
    (tmp_path / "o.toml").write_text(text)
    done = weir("output", "check", "o.toml", "--ranks", "4", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert says in done.stderr


def test_a_file_that_is_not_there(weir, tmp_path):
    done = weir("output", "check", tmp_path / "nowhere.toml")
    assert done.returncode == 3
    assert "the configuration cannot be read: No such file or directory" in done.stderr
