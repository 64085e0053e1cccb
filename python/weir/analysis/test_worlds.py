# SPDX-License-Identifier: Apache-2.0
"""Which ranks belong together, from process tables with known answers."""

from __future__ import annotations

from weir.analysis.ranks import FIRST_NAMED, RankNames, in_order, rank_list
from weir.analysis.worlds import program_of, worlds_of
from weir.trace import TraceFile
from weir.trace._synthetic import TraceWriter
from weir.trace.process import Process


def worlds(tmp_path, *nodes):
    """nodes: each the processes of a trace file, dicts of fields."""
    files = []
    for at, processes in enumerate(nodes):
        path = tmp_path / f"n{at}.weir"
        with TraceWriter(path, f"node{at}") as writer:
            for number, fields in enumerate(processes):
                made = writer.process(100 * (at + 1) + number, fields["rank"], fields["ranks"])
                made.fields |= {"start_realtime_ns": 10**18 + number, "exe": b"/bin/model",
                    **fields}
        files.append(TraceFile(path))
    found = worlds_of(files)
    return [one.ranks for one in found.found], found.of


def test_the_launchers_name_tells_programs_apart_on_all_nodes(tmp_path):
    def ranks(world, *ranks):
        same = {"ranks": 4, "world": world, "ppid": 1, "io_known": 2}
        return [{"rank": rank, **same} for rank in ranks]

    # those of two programs come mixed, and on the second node in another order
    found = worlds(tmp_path, ranks(7, 0) + ranks(8, 0) + ranks(8, 1) + ranks(7, 1),
        ranks(8, 2, 3) + ranks(7, 2, 3))
    assert found == ([4, 4], ((0, 1, 1, 0), (1, 1, 0, 0)))


def test_without_one_the_parent_tells_them_apart(tmp_path):
    def ranks(ppid, *ranks):
        return [{"rank": rank, "ranks": 2, "ppid": ppid} for rank in ranks]

    assert worlds(tmp_path, ranks(5, 0) + ranks(6, 0, 1) + ranks(5, 1)) == ([2, 2], ((0, 1, 1, 0),))


def test_programs_of_one_parent_come_one_after_another(tmp_path):
    ranks = [{"rank": rank, "ranks": 2, "ppid": 5} for rank in (0, 1, 1, 0)]
    assert worlds(tmp_path, ranks) == ([2, 2], ((0, 0, 1, 1),))


def test_ranks_of_other_nodes_and_of_other_parents_fill_a_program(tmp_path):
    here = [{"rank": 0, "ranks": 4, "ppid": 5}, {"rank": 1, "ranks": 4, "ppid": 6}]
    there = [{"rank": 2, "ranks": 4, "ppid": 5}, {"rank": 3, "ranks": 4, "ppid": 5}]
    assert worlds(tmp_path, here, there) == ([4], ((0, 0), (0, 0)))


def test_what_a_rank_starts_is_of_its_program(tmp_path):
    shell, model = {"rank": 0, "ranks": 1, "ppid": 5}, {"rank": 0, "ranks": 1, "ppid": 100}
    model |= {"rank_source": 2}
    assert worlds(tmp_path, [shell, model, {**model, "rank_source": 1}]) == ([1], ((0, 0, 0),))
    # but a second program that calls MPI_Init is one of its own
    assert worlds(tmp_path, [shell, model, model]) == ([1, 1], ((0, 0, 1),))


def test_what_has_no_rank_is_of_no_program(tmp_path):
    assert worlds(tmp_path, [{"rank": -1, "ranks": 0}]) == ([], ((-1,),))


def test_an_interpreter_is_called_by_its_script():
    def name(exe, *command):
        return program_of(Process(0, 0, True, 0, 0, exe=exe, command=command))

    assert name("/usr/bin/python3.11", "python3", "/job/post.py", "x") == "post.py"
    assert name("/usr/bin/dash", "sh", "-c", "exit") == "sh"
    assert name("/usr/bin/bash", "-bash") == "bash"
    assert name("/opt/model", "./model", "case.nml") == "model"
    assert name("") == "(unknown)"


def test_numbers_are_of_one_rank_each_and_lists_name_programs():
    names = RankNames()
    ranks = [names.of_program("pre", rank, 3) for rank in range(3)]
    post, only = names.of_process("post", True), names.of_program("tool", 0, 1)
    assert ranks == [names.of_program("pre", rank, 3) for rank in range(3)]
    assert len({*ranks, post, only, 0, -1}) == 7 and min(ranks) == FIRST_NAMED and post < -1
    assert [names[one].label for one in (7, ranks[2], post, only)] == ["7", "pre:2", "post", "tool"]
    assert [names[one].title for one in (7, ranks[2], post)] == ["rank 7", "rank pre:2", "post"]
    assert [names[one].rank for one in (7, ranks[2], post, only)] == [7, 2, -1, 0]
    assert in_order([post, ranks[0], 3]) == [3, ranks[0], post]
    assert rank_list(names[one] for one in (0, 1, 2, 5, 7, 8)) == "0-2,5,7-8"
    assert names.text([post, *ranks, only]) == "pre:0-2,tool,post"
