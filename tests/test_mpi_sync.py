# SPDX-License-Identifier: Apache-2.0
"""What ranks wait for in MPI, record by record, on each MPI, from C and each way of Fortran:
programs whose answers are known."""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from pathlib import Path

import decode
import pytest

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
ROOT = HERE.parent
ROUTINES = {
    int(value): f"MPI_{name}"
    for value, name in re.findall(r"^WEIR_MPI_ROUTINE\((\d+), (\w+)\)",
        (ROOT / "native/wire/mpi.def").read_text(), re.M)
}
OPS = {"MPI_collective", "MPI_start_collective", "MPI_wait", "MPI_receive", "MPI_probe", "MPI_send",
    "MPI_awaited"}
AWAITED = {1: "receive", 2: "collective", 3: "send"}
FLAGS = {0: "", decode.ERROR: " error"}


def communicator(record) -> str:
    """Identity and size; the members of a group are known by a hash."""
    return re.sub(r"group\.(\d+)\.\d+\.", r"group.\1.#.", record.file.removeprefix("mpi:"))


def describe(record) -> str:
    """routine communicator @offset bytes, in one line; of MPI_awaited: what, where, which, bytes.
    """
    high, low = record.size >> 32, record.size & 0xFFFFFFFF
    awaited = record.op == "MPI_awaited"
    if awaited:
        assert record.flags == decode.NESTED
    words = [AWAITED[high] if awaited else ROUTINES[high].removeprefix("MPI_"),
        communicator(record)]
    words += [f"@{record.offset}"] if record.offset is not None else []
    return " ".join(words + [str(low)]) + ("" if awaited else FLAGS[record.flags & ~decode.ROOT])


POLLS = {"Test", "Testall", "Testany", "Testsome", "Iprobe", "Improbe"}


def is_poll(record) -> bool:
    return record.op in ("MPI_wait", "MPI_probe") and (
        ROUTINES[record.size >> 32].removeprefix("MPI_") in POLLS)


def described(directory, with_polls: bool = False) -> dict[int, list[str]]:
    """What each rank did, in the order of its log; without loops of tests, which have a record only
    when the first one was in vain."""
    trace = decode.read_trace(directory)
    assert not [p for p in trace.processes.values() if p.lost_events or p.failures]
    found: dict[int, list[str]] = defaultdict(list)
    polled = {(record.process, record.start) for record in trace.records if is_poll(record)}
    for record in trace.records:
        if not with_polls and (record.process, record.start) in polled:
            continue
        if record.op in OPS:
            assert record.layer == "mpi" and record.end >= record.start
            found[trace.processes[record.process].rank].append(describe(record))
    return found


@pytest.fixture
def traced(mpi, preload_env, tmp_path):
    """``traced(program, arguments..., ranks=4)``: what each rank did until MPI_Finalize, which is
    the last collective of all."""

    def call(program, *arguments, ranks=4, **env):
        env = preload_env(WEIR_MPI_SYNC="1", **env)
        call.done = mpi.run(ranks, program, *arguments, env=env, cwd=tmp_path).ok()
        call.directory = env["WEIR_TRACE_DIR"]
        found = described(call.directory)
        last = {did.pop() for did in found.values()}
        assert not found or (len(last) == 1 and re.fullmatch(rf"Finalize world:{ranks} @\d+ 0",
            *last)), last
        return found

    return call


@pytest.fixture
def program(mpi):
    return mpi.cc((PROGRAMS / "mpi_sync.c").read_text(), name="mpi_sync")


def test_collectives(traced, program):
    found = traced(program, "c")
    for rank in range(4):
        own = 4 * (rank + 1)
        assert found[rank] == [
            "Barrier world:4 @0 0", "Bcast world:4 @1 12", "Allreduce world:4 @2 16",
            "Reduce world:4 @3 20", "Gather world:4 @4 24",
            f"Gatherv world:4 @5 {own}", "Scatter world:4 @6 8", "Allgather world:4 @7 28",
            f"Allgatherv world:4 @8 {own}",
            "Alltoall world:4 @9 32", "Alltoallv world:4 @10 16", "Reduce_scatter world:4 @11 40",
            "Scan world:4 @12 4",
        ]  # fmt: skip


@pytest.mark.any_mpi
def test_the_root_of_a_collective_says_that_it_is(traced, program):
    traced(program, "c")
    trace = decode.read_trace(traced.directory)
    roots = {
        ROUTINES[record.size >> 32]: trace.processes[record.process].rank
        for record in trace.records
        if record.op in OPS and record.flags & decode.ROOT
    }
    assert {name.removeprefix("MPI_"): rank for name, rank in roots.items()} == {
        "Bcast": 1, "Reduce": 3, "Gather": 2, "Gatherv": 0, "Scatter": 1
    }


def test_communicators_have_the_same_name_on_all_members(traced, program):
    found = traced(program, "g")
    for rank in range(4):
        half = f"world/1.{rank % 2}:2"
        expected = ["Comm_dup world:4 @0 0", "Comm_split world:4 @1 0", "Comm_split world:4 @2 0",
            "Cart_create world:4 @3 0"]
        expected += ["Comm_create world:4 @4 0", "Comm_split_type world:4 @5 0",
            f"Barrier {half} @0 0"]
        expected += ["Barrier world/2.5:3 @0 0"] if rank else []
        expected += ["Barrier world/3:4 @0 0", "Barrier world/0:4 @0 0", "Barrier world/5.0:4 @0 0"]
        expected += ["Barrier world/4.3:2 @0 0"] if rank % 2 else []
        for i in range(2) if rank % 2 == 0 else ():
            own = f"group.0.#.{i}:2"
            expected += [f"Comm_create_group {own} @0 0", f"Barrier {own} @1 0",
                f"Comm_free {own} @2 0"]
        expected += [f"Comm_free {half} @1 0", "Comm_dup world/0:4 @1 0",
            "Barrier world/0/1:4 @0 0", "Comm_free world/0/1:4 @1 0"]
        assert found[rank] == [*expected, "Barrier self:1 @0 0"], rank
    trace = decode.read_trace(traced.directory)
    # the members have one name for it
    assert len({r.file for r in trace.records if r.file.startswith("mpi:group.")}) == 2


def test_windows(traced, program):
    found = traced(program, "w")
    expected = ["Win_create world:4 @0 0", "Win_fence world/0:4 @0 0", "Win_fence world/0:4 @1 0",
        "Win_free world/0:4 @2 0"]
    assert [found[rank] for rank in range(4)] == [expected] * 4


def test_messages_name_the_peer_by_its_rank_in_the_world(traced, program):
    found = traced(program, "m")
    back = "world/0.0:4"
    expected = {
        0: [
            f"Recv {back} @1 44", f"Recv {back} @2 48", f"Probe {back} @3 52", f"Recv {back} @3 52",
            f"Mprobe {back} @3 56",
            f"Mrecv {back} @3 56", f"Recv {back} 0",
        ],
        1: [f"Send {back} @0 44"],
        2: [f"Ssend {back} @0 48"],
        3: [f"Send {back} @0 52", f"Send {back} @0 56"],
    }  # fmt: skip
    for rank in range(4):
        shift = [f"Sendrecv world:4 @{(rank + 3) % 4} 4", f"send world:4 @{(rank + 1) % 4} 4"]
        assert found[rank] == ["Comm_split world:4 @0 0", *expected[rank], *shift]


def test_waits_say_what_they_brought(traced, program):
    found = traced(program, "r")
    end = [
        "Ibarrier world:4 @0 0", "Wait  1", "collective world:4 @0 0", "Iallreduce world:4 @1 12",
        "Ibcast world:4 @2 8",
        "Waitall  2", "collective world:4 @1 0", "collective world:4 @2 0",
    ]  # fmt: skip
    all_of_them = ["Waitall  8"] + [f"receive world:4 @{1 + i % 3} {4 * i}" for i in range(8)]
    assert found[0][:9] == all_of_them and found[0][-len(end) :] == end
    brought = {f"receive world:4 @{peer} {4 * peer}" for peer in (1, 2, 3)}
    rest = found[0][9 : -len(end)]
    assert rest[0:6:2] == ["Waitany  4"] * 3 and set(rest[1:6:2]) == brought
    persistent = [text for text in rest[6:] if text.startswith("Wait ")]
    some = rest[6 : rest.index("Wait  1")]
    assert set(some) == {"Waitsome  3"} | brought and len(some) == 3 + some.count("Waitsome  3")
    again = rest[6 + len(some) :]
    assert again[0:6:2] == ["Wait  1"] * 3 and set(again[1:6:2]) == brought
    assert len(persistent) == 5 and again[6:] == ["Wait  1", "Wait  1"]  # not begun; from nobody
    for rank in range(1, 4):
        sends = [f"Ssend world:4 @0 {4 * i}" for i in range(8) if 1 + i % 3 == rank]
        sends += [f"Send world:4 @0 {4 * rank}", "Wait  1", "send world:4 @0 0",
            f"Send world:4 @0 {4 * rank}"]
        sends += ["Send world:4 @0 4"] if rank == 1 else []
        assert found[rank] == sends + end


def test_what_is_followed_without_a_record_and_communicators_made_in_other_ways(traced, program):
    found = traced(program, "x")
    alone = r"\?\d+\.\d+:"
    for rank in range(4):
        first = 2 * (rank // 2)
        half, next_rank, before = f"world/1.{first}:2", (rank + 1) % 4, (rank + 3) % 4
        expected = [
            "Comm_idup world:4 @0 0", "Wait  1", "collective world:4 @0 0",
            "Barrier world/0:4 @0 0", "Comm_create world:4 @1 0",
            f"Barrier {half} @0 0", f"Intercomm_create {half} @1 0", "Barrier ~2 @0 0",
        ]  # fmt: skip
        expected += ["Send ~2 @2 4"] if rank == 1 else ["Recv ~2 @1 4"] if rank == 2 else []
        expected += ["Intercomm_merge ~2 @1 0", "Barrier ~4 @0 0", "Cart_create world:4 @2 0",
            "Cart_sub world/2:4 @0 0"]
        expected += [f"Barrier world/2/0.{first}:2 @0 0"]
        expected += ["Recv world:4 @0 4"] if rank == 2 else []
        expected += [f"Win_allocate {half} @2 0", f"Win_fence {half[:-2]}/2:2 @0 0",
            f"Win_free {half[:-2]}/2:2 @1 0"]
        expected += ["Send world:4 @2 4"] if rank == 0 else []
        expected += [f"Send world:4 @{next_rank} 4"] * 4
        expected += ["Waitall  2", f"send world:4 @{next_rank} 0", f"receive world:4 @{before} 8"]
        expected += ["Wait  1", f"receive world:4 @{before} 12", "Wait  1",
            f"send world:4 @{next_rank} 0"]
        expected += ["Dist_graph_create_adjacent world:4 @3 0", "Barrier world/3:4 @0 0"]
        assert [re.sub(alone, "~", text) for text in found[rank]] == expected, rank
    trace = decode.read_trace(traced.directory)
    # two for each rank, and none like another's
    assert len({r.file for r in trace.records if r.file.startswith("mpi:?")}) == 8


SPELLINGS = """
void BARRIER(int *, int *), ALLREDUCE(void *, void *, int *, int *, int *, int *, int *), SPLIT(int *, int *, int *, int *, int *);
void IRECV(void *, int *, int *, int *, int *, int *, int *, int *), SEND(void *, int *, int *, int *, int *, int *, int *);
void WAITALL(int *, int *, int *, int *), INIT(int *), FINALIZE(int *), RANK(int *, int *, int *);
int main(void) {
  int world = WORLD, type = INTEGER, sum = SUM, error, one = 1, two = 2, zero = 0, a[2] = {1, 2}, b[2], requests[2], statuses[12], made, rank, other;
  INIT(&error);
  RANK(&world, &rank, &error);
  other = 1 - rank;
  BARRIER(&world, &error);
  ALLREDUCE(a, b, &two, &type, &sum, &world, &error);
  SPLIT(&world, &zero, &zero, &made, &error);
  for (int i = 0; i < 2; ++i) IRECV(&b[i], &one, &type, &other, &i, &made, &requests[i], &error);
  for (int i = 0; i < 2; ++i) SEND(a, &one, &type, &other, &i, &made, &error);
  WAITALL(&two, requests, statuses, &error);
  FINALIZE(&error);
  return error || b[0] != 1 || b[1] != 1;
}
"""
# As Fortran has them: MPI_COMM_WORLD, MPI_INTEGER, MPI_SUM; with mpi_f08 a descriptor of the buffer
# for MPICH, which C has not.
FORTRAN_CONSTANTS = {"openmpi": (0, 7, 3), "mpich": (0x44000000, 0x4C00041B, 0x58000003)}


@pytest.mark.parametrize("spelling", ["{}_", "{}__", "{}", "upper", "{}_f08_"])
def test_spellings_of_fortran_compilers(traced, mpi, spelling):
    """Called from C: one compiler uses one spelling, and an MPI library is there for all."""
    if mpi.name == "mpich" and "f08" in spelling:
        pytest.skip("mpi_f08 of MPICH takes descriptors of arrays; the Fortran program above calls "
                    "it")
    names = {"INIT": "init", "FINALIZE": "finalize", "BARRIER": "barrier", "ALLREDUCE": "allreduce",
        "SPLIT": "comm_split", "RANK": "comm_rank"}
    names |= {"IRECV": "irecv", "SEND": "send", "WAITALL": "waitall"}
    spelled = {k: f"MPI_{v}".upper() if spelling == "upper" else spelling.format(f"mpi_{v}")
        for k, v in names.items()}
    flags = [f"-D{k}={v}" for k, v in spelled.items()]
    flags += [f"-D{k}={v}" for k, v in zip(("WORLD", "INTEGER", "SUM"),
        FORTRAN_CONSTANTS[mpi.name])]
    libraries = {"openmpi": ["-lmpi_usempif08", "-lmpi_mpifh"], "mpich": ["-lmpichfort"]}[mpi.name]
    found = traced(mpi.cc(SPELLINGS, *flags, *libraries, name="spellings"), ranks=2)
    for rank in range(2):
        made, other = "world/2.0:2", 1 - rank
        sends = [f"Send {made} @{other} 4"] * 2
        brought = ["Waitall  2"] + [f"receive {made} @{other} 4"] * 2
        assert found[rank] == ["Barrier world:2 @0 0", "Allreduce world:2 @1 8",
            "Comm_split world:2 @2 0", *sends, *brought]


def test_a_call_that_fails_fails_as_it_would_and_is_no_collective(traced, program):
    found = traced(program, "e")
    assert "".join(traced.done.stdout.split()) == "11" * 4  # the launcher mixes lines
    assert [found[rank] for rank in range(4)] == [["Bcast world:4 0 error", "Send  0 error",
        "Barrier world:4 @0 0"]] * 4


@pytest.mark.parametrize("way", ["MPIFH", "F90", "F08"])
def test_fortran(traced, mpi, way):
    found = traced(mpi.fc((PROGRAMS / "mpi_sync.F90").read_text(), f"-D{way}",
        name=f"mpi_sync_{way}"))
    brought = [f"receive world:4 @{peer} {4 * peer}" for peer in (1, 2, 3)]
    for rank in range(4):
        half = f"world/4.{rank % 2}"
        begin = ["Barrier world:4 @0 0", "Bcast world:4 @1 12", "Allreduce world:4 @2 16",
            "Gather world:4 @3 24"]
        begin += ["Comm_split world:4 @4 0", f"Comm_dup {half}:2 @0 0", f"Barrier {half}/0:2 @0 0",
            f"Comm_free {half}:2 @1 0"]
        end = [f"Sendrecv world:4 @{(rank + 3) % 4} 4", f"send world:4 @{(rank + 1) % 4} 4",
            "Ibarrier world:4 @5 0", "Wait  1", "collective world:4 @5 0"]
        assert found[rank][:8] == begin and found[rank][-5:] == end
        middle = found[rank][8:-5]
        if rank:
            isend = ["Wait  1", "send world:4 @0 0"]
            late = ["Send world:4 @0 4"] if rank == 1 else []
            assert middle == ["Send world:4 @0 36"] * (rank == 2) + [f"Ssend world:4 @0 {4 * rank}",
                *isend, *late]
            continue
        assert middle[:6] == ["Probe world:4 @2 36", "Recv world:4 @2 36", "Waitall  3", *brought]
        assert [text for text in middle[6:] if "receive" not in text] == ["Waitany  3",
            "Waitany  3", "Waitsome  3"]
        assert sorted(text for text in middle[6:] if "receive" in text) == brought


RANDOM = """
#include <mpi.h>
#include <stdlib.h>
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  static MPI_Comm known[100];
  static MPI_Request open[200];
  int count = 1, begun = 0, rank, value = 1, sum, world;
  MPI_Comm_rank(MPI_COMM_WORLD, &world);
  known[0] = MPI_COMM_WORLD;
  for (int i = 1; i < argc; ++i) {
    int at = atoi(argv[i] + 1);
    MPI_Comm on = known[at];
    if (strchr_made(argv[i][0])) known[count++] = MPI_COMM_NULL;
    if (on == MPI_COMM_NULL) continue;
    MPI_Comm_rank(on, &rank);
    switch (argv[i][0]) {
      case 'b': MPI_Barrier(on); break;
      case 'a': MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, on); break;
      case 'i': MPI_Ibarrier(on, &open[begun++]); break;
      case 'w': MPI_Waitall(begun, open, MPI_STATUSES_IGNORE); begun = 0; break;
      case 'd': MPI_Comm_dup(on, &known[count - 1]); break;
      case 's': MPI_Comm_split(on, world % 2 ? 3 : MPI_UNDEFINED, 0, &known[count - 1]); break;
      case 'p': MPI_Comm_split(on, world % 2, -world, &known[count - 1]); break;
      case 'f': MPI_Comm_free(&known[at]); break;
    }
  }
  return MPI_Finalize();
}
""".replace("strchr_made(argv[i][0])",
    "(argv[i][0] == 'd' || argv[i][0] == 's' || argv[i][0] == 'p')")


class Model:
    """Communicators as each rank should know them: members, identity, collectives so far."""

    def __init__(self, ranks: int):
        self.known: list[dict[int, tuple[tuple[int, ...], str]]] = [
            {r: (tuple(range(ranks)), "world") for r in range(ranks)}]
        self.count: Counter[str] = Counter()
        self.expected: dict[int, list[str]] = {r: [] for r in range(ranks)}
        self.open: dict[int, list[str]] = {r: [] for r in range(ranks)}

    def groups(self, at: int) -> dict[tuple[tuple[int, ...], str], None]:
        return dict.fromkeys(self.known[at].values())

    def do(self, kind: str, at: int) -> None:
        made: dict[int, tuple[tuple[int, ...], str]] = {}
        for members, identity in self.groups(at):
            name, sequence = f"{identity}:{len(members)}", self.count[identity]
            routine = {"b": "Barrier", "a": "Allreduce", "i": "Ibarrier", "d": "Comm_dup",
                "f": "Comm_free"}.get(kind, "Comm_split")
            self.count[identity] += kind != "w"
            for rank in members:
                if kind == "w":
                    self.expected[rank] += [f"Waitall  {len(self.open[rank])}", *self.open[rank]]
                    self.open[rank] = []
                    continue
                self.expected[rank].append(
                    f"{routine} {name} @{sequence} {4 if kind == 'a' else 0}")
                if kind == "i":
                    self.open[rank].append(f"collective {name} @{sequence} 0")
            child = f"{identity}/{sequence}"
            odd, even = (tuple(r for r in members if r % 2 == side) for side in (1, 0))
            if kind == "d":
                made |= dict.fromkeys(members, (members, child))
            if kind in "sp":
                made |= dict.fromkeys(odd, (odd, f"{child}.{3 if kind == 's' else 1}"))
            if kind == "p":
                made |= dict.fromkeys(even, (even, f"{child}.0"))
        if kind in "dsp":
            self.known.append(made)
        if kind == "f":
            self.known[at] = {}


@pytest.mark.any_mpi
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_any_order_of_collectives_on_any_communicators(traced, mpi, seed):
    chosen = random.Random(seed)
    model, plan = Model(4), []
    for _ in range(60):
        alive = [at for at, groups in enumerate(model.known) if groups]
        at = chosen.choice(alive)
        kind = chosen.choice("bbaaidspf" if at != 0 else "bbaaidsp")
        steps = [("w", 0)] if kind == "f" else []
        for step in [*steps, (kind, at)]:
            model.do(*step)
            plan.append("{}{}".format(*step))
    model.do("w", 0)
    found = traced(mpi.cc(RANDOM, name="random_collectives"), *plan, "w0")
    assert {rank: found[rank]
        for rank in range(4)} == model.expected, f"seed {seed}: {' '.join(plan)}"


@pytest.mark.any_mpi
def test_without_mpi_none_of_it_is_recorded(traced, program):
    found = traced(program, "cgwmr", WEIR_MPI="0")
    trace = decode.read_trace(traced.directory)
    assert not found and len(trace.of("MPI_Init")) == 4 and not [r for r in trace.records if r.file
        .startswith("mpi:")]


@pytest.mark.any_mpi
def test_the_option_of_the_command(weir, mpi, tmp_path, program):
    for options, expected in ([], 14 * 4), (["--no-mpi"], 0):
        run = tmp_path / f"run{len(options)}"
        weir("trace", "-q", "-o", run, *options, "--", *mpi.launch(4, program, "c"),
            env=dict(mpi.env), cwd=tmp_path).ok()
        assert len(decode.read_trace(run / "main").of("MPI_collective")) == expected


@pytest.mark.any_mpi
@pytest.mark.parametrize("level", ["summary", "detail"])
def test_lower_levels_count_calls_and_bytes(traced, program, level):
    assert not traced(program, "cr", WEIR_LEVEL=level)
    counters = [c for c in decode.read_trace(traced.directory).counters if c.op in OPS]
    totals = Counter()
    for c in counters:
        totals[c.op] += c.calls
        assert c.bytes < 1 << 20 and not c.flags
    assert totals["MPI_collective"] == 14 * 4 and totals[
        "MPI_start_collective"] == 3 * 4 and "MPI_awaited" not in totals
    names = {c.file for c in counters if c.op == "MPI_collective"}
    assert names == ({"mpi:world:4"} if level == "detail" else {""})


MANY = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
enum { N = 40000 };
static MPI_Request requests[N];
static int got[N];
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  long sum = 0;
  for (int i = 0; i < N; ++i) MPI_Irecv(&got[i], 1, MPI_INT, MPI_ANY_SOURCE, i % 1000, MPI_COMM_SELF, &requests[i]);
  for (int i = 0; i < N; ++i) MPI_Send(&i, 1, MPI_INT, 0, i % 1000, MPI_COMM_SELF);
  MPI_Waitall(N, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < N; ++i) sum += got[i];
  printf("%ld\\n", sum);
  return MPI_Finalize();
}
"""


@pytest.mark.any_mpi
def test_more_requests_than_are_followed_are_waited_for_all_the_same(traced, mpi):
    found = traced(mpi.cc(MANY, name="many_requests"), ranks=1)
    assert int(traced.done.stdout) == 40000 * 39999 // 2
    assert traced.done.stderr.count("more requests under way than can be followed") == 1
    assert len(found[0]) == 40000 + 1 + 64 and found[0][40000] == "Waitall  40000"
    # of so many no statuses are asked for: what was posted is known, not who came
    assert found[0][40001:] == ["receive self:1 4"] * 64


THREADS = """
#include <mpi.h>
#include <pthread.h>
static MPI_Comm own[3];
static int rank;
static void *work(void *argument) {
  const long i = (long)argument;
  int in, out = 7;
  for (int n = 0; n < 50; ++n) {
    MPI_Request requests[2];
    MPI_Irecv(&in, 1, MPI_INT, 1 - rank, 0, own[i], &requests[0]);
    MPI_Isend(&out, 1, MPI_INT, 1 - rank, 0, own[i], &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Barrier(own[i]);
  }
  return 0;
}
int main(int argc, char **argv) {
  int provided;
  pthread_t threads[3];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (provided < MPI_THREAD_MULTIPLE) return 2;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 3; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &own[i]);
  for (long i = 0; i < 3; ++i) pthread_create(&threads[i], 0, work, (void *)i);
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], 0);
  return MPI_Finalize();
}
"""


@pytest.mark.any_mpi
def test_threads_have_their_own_communicators_and_requests(traced, mpi):
    found = traced(mpi.cc(THREADS, "-pthread", name="mpi_threads"), ranks=2)
    for rank in range(2):
        counted = Counter(found[rank])
        assert counted["Waitall  2"] == 150
        for i in range(3):
            on = f"world/{i}:2"
            assert counted[f"receive {on} @{1 - rank} 4"] == counted[
                f"send {on} @{1 - rank} 0"] == 50
            assert [counted[f"Barrier {on} @{n} 0"] for n in range(50)] == [1] * 50


OUTPUT_LIBRARY = """
#include <mpi.h>
void output(MPI_Comm of_program) {
  MPI_Comm own;
  MPI_Request request;
  int value = 1, got;
  MPI_Comm_dup(of_program, &own);
  MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 0, own, &request);
  int rank, size;
  MPI_Comm_rank(own, &rank);
  MPI_Comm_size(own, &size);
  MPI_Send(&value, 1, MPI_INT, (rank + 1) % size, 0, own);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Ibarrier(own, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_free(&own);
}
"""
WITH_LIBRARY = """
#include <mpi.h>
void output(MPI_Comm);
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Barrier(MPI_COMM_WORLD);
  output(MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  return MPI_Finalize();
}
"""


@pytest.mark.any_mpi
def test_what_libweir_waits_for_is_its_own(traced, mpi):
    library = mpi.cc(OUTPUT_LIBRARY, "-shared", "-fPIC", name="libweir.so")
    found = traced(mpi.cc(WITH_LIBRARY, str(library), f"-Wl,-rpath,{library.parent}",
        name="with_library"), ranks=2)
    assert [found[rank] for rank in range(2)] == [["Barrier world:2 @0 0",
        "Barrier world:2 @2 0"]] * 2


FILES = """
#include <mpi.h>
int main(int argc, char **argv) {
  MPI_File file;
  MPI_Request request;
  int rank, value = 7;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_open(MPI_COMM_WORLD, "data", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  MPI_File_write_at_all(file, 4 * rank, &value, 1, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_iwrite_at(file, 4 * rank, &value, 1, MPI_INT, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  MPI_Barrier(MPI_COMM_WORLD);
  return MPI_Finalize();
}
"""


@pytest.mark.parametrize("io", ["romio321", "ompio"])
def test_what_files_do_in_mpi_is_not_the_programs(traced, mpi, io):
    found = traced(mpi.cc(FILES, name="mpi_files"), ranks=2, OMPI_MCA_io=io)
    assert [found[rank] for rank in range(2)] == [["Barrier world:2 @0 0", "Wait  1",
        "Barrier world:2 @1 0"]] * 2


POLLING = """
#include <mpi.h>
#include <time.h>
#include <unistd.h>
int main(int argc, char **argv) {
  int rank, done = 0, number[2], index, indices[2], other = 0;
  MPI_Request some[2];
  MPI_Status status, each[2];
  MPI_Message message;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int round = 0; round < 6; round++) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
      usleep(100000);
      for (int i = 0; i < 2; i++) MPI_Send(&round, 1, MPI_INT, 1, round, MPI_COMM_WORLD);
      continue;
    }
    if (round < 4)
      for (int i = 0; i < 2; i++)
        MPI_Irecv(number + i, 1, MPI_INT, 0, round, MPI_COMM_WORLD, some + i);
    done = 0;
    if (round == 0) while (!done) MPI_Test(some, &done, &status);
    if (round == 1) while (!done) MPI_Testall(2, some, &done, MPI_STATUSES_IGNORE), usleep(500);
    if (round == 2) while (!done) MPI_Testany(2, some, &index, &done, &status);
    if (round == 3) while (!done) MPI_Testsome(2, some, &done, indices, each);
    if (round == 4) while (!done) MPI_Iprobe(0, 4, MPI_COMM_WORLD, &done, MPI_STATUS_IGNORE);
    if (round == 5) while (!done) MPI_Improbe(0, 5, MPI_COMM_WORLD, &done, &message, &status);
    if (round == 5) MPI_Mrecv(number, 1, MPI_INT, &message, &status);
    if (round == 4) MPI_Recv(number, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, &status);
    if (round >= 4) MPI_Recv(number, 1, MPI_INT, 0, round, MPI_COMM_WORLD, &status);
    else MPI_Waitall(2, some, MPI_STATUSES_IGNORE);
    MPI_Test(some, &other, &status);
  }
  /* Who computes between tests does not wait. */
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) usleep(100000), MPI_Send(&done, 1, MPI_INT, 1, 9, MPI_COMM_WORLD);
  if (rank == 1) {
    MPI_Irecv(number, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, some);
    for (done = 0; !done; MPI_Test(some, &done, &status))
      for (const clock_t begun = clock(); clock() - begun < CLOCKS_PER_SEC / 50;) other++;
  }
  MPI_Finalize();
  return 0;
}
"""


def test_loops_of_tests_are_waits_from_the_first_one_in_vain(traced, mpi):
    """Rank 0 sends 0.1 s after each barrier: tests before that are in vain."""
    program = mpi.cc(POLLING, name="mpi_polling")
    assert not any("Test" in one for one in traced(program, ranks=2)[1])
    trace = decode.read_trace(traced.directory)
    rank = next(p for p, one in trace.processes.items() if one.rank == 1)
    polls = [one for one in trace.records if is_poll(one) and one.process == rank]
    names = [ROUTINES[one.size >> 32].removeprefix("MPI_") for one in polls]
    assert names == ["Test", "Testall", "Testany", "Testsome", "Iprobe", "Improbe"]
    awaited = [sum(one.op == "MPI_awaited" and one.start == poll.start and one.process == rank
        and one.offset == 0 for one in trace.records) for poll in polls]
    assert awaited[:3] == [1, 2, 1] and awaited[3] in (1, 2) and awaited[4:] == [0, 0]
    assert [poll.offset for poll in polls[4:]] == [0, 0]
    ends = [one.end for one in trace.records if one.process == rank
        and one.op == "MPI_collective"]
    # each loop began directly behind its barrier
    assert all(any(end <= poll.start for end in ends) for poll in polls)
    assert len({max(end for end in ends if end <= poll.start) for poll in polls}) == len(polls)


def test_every_routine_has_a_number_and_every_spelling_a_hook():
    calls = re.findall(r"^WEIR_MPI_CALL\((\w+), (\w+), (\w+),", (ROOT / "native/hook/mpi/calls.def")
        .read_text(), re.M)
    table = (ROOT / "native/hook/table.def").read_text()
    assert len(calls) > 90 and {f"MPI_{name}" for name, _, _ in calls} | {"MPI_Finalize"} == set(
        ROUTINES.values())
    for name, lower, upper in calls:
        assert (name.lower(), name.upper()) == (lower,
            upper) and f"WEIR_HOOKED_MPI({name}, {lower}, {upper})" in table


def test_the_reader_names_the_routines():
    from weir.trace.ops import mpi_routines

    assert mpi_routines() == ROUTINES
