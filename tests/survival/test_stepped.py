# SPDX-License-Identifier: Apache-2.0
"""A signal handler that makes hundreds of calls, at every single instruction of a call: no crash,
and each record arrives once and whole."""

import pytest
from weir_guest import counts, lost

HANDLED = 400


def stepped(guest, traced, what: str, *, stride: int = 1, level: str = "trace", **variables: str):
    """The trace, and how many children were interrupted, each after `stride` instructions more than
    the one before."""
    outcome = traced([guest("stepped.c", f"-DHANDLED={HANDLED}"), what, stride // 2, stride],
        level=level, **variables).ok()
    children, instructions = (int(word) for word in outcome.done.stdout.split())
    assert children >= 8, instructions
    trace = outcome.trace
    assert counts(trace, "pwrite", "handled") == children * HANDLED
    assert lost(trace) == 0
    assert {p.failures for p in trace.processes.values()} == {0}
    return trace, children


# "record": into a place of the chunk; "full": the chunk has no place left; "first": the first call
# of a forked child.
@pytest.mark.parametrize(("what", "stride"), [("record", 1), ("full", 67), ("first", 601)])
def test_a_record_on_its_way(guest, traced, what, stride):
    trace, children = stepped(guest, traced, what, stride=stride)
    written = trace.of("pwrite", file="interrupted")
    stepped_calls = [r for r in written if r.offset != 0 and r.size == 1]
    assert sorted(r.offset for r in stepped_calls) == list(range(1, children + 1))
    handled = trace.of("pwrite", file="handled")
    assert sorted(r.offset for r in handled) == sorted(list(range(HANDLED)) * children)
    assert all(r.size == 1 and r.end >= r.start for r in handled)


def test_a_record_that_a_handler_jumps_out_of(guest, traced):
    trace, children = stepped(guest, traced, "jump")
    offsets = [r.offset for r in trace.of("pwrite", file="interrupted") if r.offset != 0]
    assert len(offsets) == len(set(offsets)) <= children
    assert set(offsets) <= set(range(1, children + 1))


def test_a_counter_on_its_way(guest, traced):
    trace, children = stepped(guest, traced, "count", stride=7, level="detail")
    # and those of the child that counts instructions
    assert counts(trace, "pwrite", "interrupted") == 2 * (children + 1)
    for number in range(60):
        assert counts(trace, "pwrite", f"new.{number:02}") == children


def test_a_counter_of_all_files_on_its_way(guest, traced):
    outcome = traced([guest("stepped.c", f"-DHANDLED={HANDLED}"), "record", 0, 5],
        level="summary").ok()
    children, _ = (int(word) for word in outcome.done.stdout.split())
    assert sum(c.calls for c in outcome.trace.counters if c.op == "pwrite") == children * (HANDLED
        + 2) + 2


def test_a_name_on_its_way(guest, traced):
    trace, children = stepped(guest, traced, "open", stride=601)
    assert counts(trace, "open", "opened") == counts(trace, "pwrite", "opened") == children + 1
    for number in range(60):
        assert counts(trace, "open", f"new.{number:02}") == children
        assert counts(trace, "pwrite", f"new.{number:02}") == children


LIVES_IN_A_HANDLER = """
static int mapped(void) {
  char line[512];
  int found = 0;
  FILE* maps = fopen("/proc/self/maps", "r");
  while (fgets(line, sizeof line, maps)) found += strstr(line, ".weir") != NULL;
  fclose(maps);
  return found;
}
static int file;
static void handler(int unused) {
  for (int i = 0; i < CALLS; ++i) MUST(pwrite(file, "x", 1, i) == 1);
}
static void* run(void* unused) {
  MUST(pthread_kill(pthread_self(), SIGUSR1) == 0);
  const int within = mapped();
  for (int i = 0; i < CALLS; ++i) MUST(pwrite(file, "x", 1, CALLS + i) == 1);
  printf("%d %d\\n", within, mapped());
  return NULL;
}
int main(int argc, char** argv) {
  file = open_new("file");
  signal(SIGUSR1, handler);
  pthread_t thread;
  if (argc == 1) return run(NULL) != NULL;
  MUST(pthread_create(&thread, NULL, run, NULL) == 0 && pthread_join(thread, NULL) == 0);
  return 0;
}
"""


@pytest.mark.parametrize("where", [[], ["thread"]])
def test_memory_of_full_chunks_is_given_back_in_handlers_and_outside(guest, traced, where):
    """Chunks of 1 MiB hold 32,766 records: of five, all but the last ones are gone, and no record
    with them."""
    calls = 70_000
    outcome = traced([guest(LIVES_IN_A_HANDLER, f"-DCALLS={calls}"), *where]).ok()
    within, after = (int(word) for word in outcome.done.stdout.split())
    # the file's header, process, names, a dozen chunks of 4 KiB to 1 MiB that a handler did not
    # dare to unmap
    assert within <= 13
    assert after <= 6
    assert [r.offset for r in outcome.trace.of("pwrite", file="file")] == list(range(2 * calls))
