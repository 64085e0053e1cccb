# SPDX-License-Identifier: Apache-2.0
"""#DW lines: what is read of a script, and what is refused with its line."""

from __future__ import annotations

import pytest

from weir._errors import InputError
from weir.stage.directives import parse_size, read_directives

# From a conference paper on a weather model with DataWarp.
WRF = """#!/bin/bash
#SBATCH -N 1
#DW jobdw type=scratch access_mode=striped capacity=1150GiB
#DW stage_in type=file source=INPUT/wrfinput_d01 destination=$DW_JOB_STRIPED/wrfinput_d01
#DW stage_out type=file destination=OUTPUT/wrfout source=$DW_JOB_STRIPED/wrfout

srun wrf.exe
"""


@pytest.fixture
def read(tmp_path):
    def of(text):
        script = tmp_path / "job.sh"
        script.write_text(text)
        return read_directives(script)
    return of


def test_a_script_of_a_paper_is_read(read):
    job = read(WRF)
    assert (job.access_modes, job.capacity_bytes) == (("striped",), 1150 * 2**30)
    assert [(one.line, one.out, one.type, one.source, one.destination) for one in job.stagings] == [
        (4, False, "file", "INPUT/wrfinput_d01", "$DW_JOB_STRIPED/wrfinput_d01"),
        (5, True, "file", "$DW_JOB_STRIPED/wrfout", "OUTPUT/wrfout"),
    ]


def test_settings_of_the_hardware_are_read_over(read):
    job = read("#DW jobdw pool=wlm_pool type=scratch capacity=2TB "
               "access_mode=striped(MDS=yes),private(client_cache=yes)\ntrue\n")
    assert (job.access_modes, job.capacity_bytes) == (("striped", "private"), 2 * 10**12)


@pytest.mark.parametrize("text, bytes", [("1", 1), ("200GB", 200 * 10**9), ("10G", 10**10),
    ("1150GiB", 1150 * 2**30), ("0.5KiB", 512), ("3 MiB", 3 * 2**20), ("GB", None), ("1XB", None),
    ("-1GB", None), ("1gb", None)])
def test_sizes(text, bytes):
    assert parse_size(text) == bytes


@pytest.mark.parametrize("line, nodes", [("#SBATCH -N 4", 4), ("#SBATCH -N4 --time=1", 4),
    ("#SBATCH --time=1 --nodes=3", 3), ("#SBATCH --nodes 2-8", 2), ("#SBATCH -n 64", None),
    ("#SBATCH --ntasks-per-node=4", None), ("#PBS -l select=4:ncpus=8", 4),
    ("#PBS -l nodes=2:ppn=8", 2), ("#PBS -l walltime=1:00:00,nodes=2", 2),
    ("#PBS -lselect=1:mem=1gb+2:ncpus=8", 3), ("#PBS -l nodes=a+b", 2), ("## -N 4", None),
    ("#PBS -l select=1", 1), ("#SBATCH --job-name=x-N4", None), ("true; #SBATCH -N 4", None)])
def test_nodes_that_the_script_asks_for(read, line, nodes):
    script = read(f"{JOBDW}{line}\ntrue\n#SBATCH -N 9\n")
    assert [(one[0], one[1]) for one in script.nodes] == ([] if nodes is None else [(2, nodes)])


JOBDW = "#DW jobdw type=scratch access_mode=striped capacity=1GB\n"
REFUSED = {
    "no_jobdw": ("#SBATCH -N 1\ntrue\n", "no line '#DW jobdw"),
    "unknown_verb": ("#DW stagein x=1\n", ":1: #DW stagein: expected jobdw, stage_in or stage_out"),
    "empty": ("#DW\n", ":1: expected jobdw"),
    "twice": (JOBDW * 2, ":2: #DW jobdw: line 1 has one already"),
    "cache": ("#DW jobdw type=cache access_mode=striped capacity=1GB\n", "type=cache: expected"),
    "mode": ("#DW jobdw type=scratch access_mode=ldbalance capacity=1GB\n", "access_mode=ldbal"),
    "capacity": ("#DW jobdw type=scratch access_mode=striped capacity=lots\n", "capacity=lots"),
    "no_capacity": ("#DW jobdw type=scratch access_mode=striped\n", "expected capacity="),
    "unknown_key": ("#DW jobdw typ=scratch access_mode=striped capacity=1\n", "found typ="),
    "no_value": ("#DW jobdw type\n", "expected KEY=VALUE, found 'type'"),
    "key_twice": ("#DW jobdw type=a type=b\n", "type is given twice"),
    "swap": ("#DW swap 10GiB\n", ":1: #DW swap: weir gives compute nodes no swap"),
    "persistent": ("#DW persistentdw name=x\n", "weir makes no persistent instances"),
    "bb": ("#BB create_persistent name=x\n", ":1: #BB: weir makes no persistent instances"),
    "type": (JOBDW + "#DW stage_in type=dir source=a destination=$DW_JOB_STRIPED\n", "type=dir"),
    "in_place": (JOBDW + "#DW stage_in type=file source=a destination=b\n",
        ":2: #DW stage_in: destination=b: expected a path that begins with $DW_JOB_STRIPED"),
    "out_place": (JOBDW + "#DW stage_out type=file source=a destination=b\n", "source=a: expected"),
    "below": (JOBDW + "true\n#DW stage_in type=file\n", ":3: a #DW line below the first command "
        "(line 2) is ignored by batch systems"),
    "quotes": ("#DW jobdw 'type=scratch\n", ":1: No closing quotation"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_done_is_refused(read, case):
    text, message = REFUSED[case]
    with pytest.raises(InputError) as error:
        read(text)
    assert message in str(error.value) and "job.sh" in str(error.value)
