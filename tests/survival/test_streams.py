# SPDX-License-Identifier: Apache-2.0
"""Streams of the C library where they are delicate: forked with text in their buffers, at exit,
closed under them, in many threads."""

from weir_guest import lost

FORKED = """
int main(void) {
  FILE* f = fopen("file", "w");
  fputs("before ", f);  // in the buffer, and so in the child's
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    fputs("child ", f);
    exit(0);
  }
  wait(NULL);
  fputs("parent ", f);
  return 0;  // exit flushes
}
"""


def test_a_buffer_that_is_forked_is_written_twice_as_ever(guest, traced, tmp_path):
    trace = traced([guest(FORKED, "-fno-builtin")], cwd=tmp_path).ok().trace
    assert (tmp_path / "file").read_text() == "before child before parent "
    assert [r.size for r in trace.of("fputs", file="file")] == [7, 6, 7]
    assert len({r.process for r in trace.of("fputs", file="file")}) == 2


UNDER = """
int main(void) {
  FILE* f = fopen("file", "w+");
  setvbuf(f, NULL, _IONBF, 0);
  for (int i = 0; i < 10; ++i) MUST(fputc('x', f) == 'x');
  MUST(close(fileno(f)) == 0);
  errno = 0;
  MUST(fputc('y', f) == EOF && errno == EBADF);
  int other = open_new("other");
  MUST(other == fileno(f) && fputc('z', f) == 'z');  // goes to the other file now
  fclose(f);
  MUST(write(other, "x", 1) == -1 && errno == EBADF);
  for (int fd = 0; fd < 3; ++fd) close(fd);
  MUST(puts("nobody hears") == EOF || fflush(stdout) == EOF);
  f = fopen("file", "r");
  MUST(f && fileno(f) == 0 && fgetc(f) == 'x');
  return 0;
}
"""


def test_a_descriptor_closed_under_its_stream(guest, traced):
    trace = traced([guest(UNDER)]).ok().trace
    assert [r.failed for r in trace.of("fputc")] == [False] * 10 + [True, False]
    assert [r.file.rpartition("/")[2] for r in trace.of("fputc")][-1] == "other"
    assert len(trace.of("fgetc", file="file")) == 1


SHARED = """
static FILE* f;
static void* work(void* unused) {
  for (int i = 0; i < 2000; ++i) MUST(fprintf(f, "%04d\\n", i) == 5);
  return unused;
}
int main(void) {
  f = fopen("file", "w");
  pthread_t thread[4];
  for (int i = 0; i < 4; ++i) pthread_create(&thread[i], NULL, work, NULL);
  for (int i = 0; i < 3; ++i) MUST(fork() != 0 || (_exit(0), 0));
  for (int i = 0; i < 4; ++i) pthread_join(thread[i], NULL);
  while (wait(NULL) > 0) {}
  flockfile(f);
  for (int i = 0; i < 5; ++i) putc_unlocked('l', f);
  funlockfile(f);
  MUST(fclose(f) == 0);
  struct stat st;
  MUST(stat("file", &st) == 0 && st.st_size == 4 * 2000 * 5 + 5);
  return 0;
}
"""


def test_one_stream_in_many_threads(guest, traced):
    trace = traced([guest(SHARED)]).ok().trace
    lines = trace.of("fprintf", file="file")
    assert len(lines) == 8000 and len({r.thread for r in lines}) == 4
    assert lost(trace) == 0


AT_EXIT = """
static FILE* f;
static void late(void) { fputs("late ", f); }
static void __attribute__((destructor)) last(void) {
  fputs("last ", f);
  fclose(f);
}
int main(void) {
  f = fopen("file", "w");
  atexit(late);
  fputs("first ", f);
  exit(0);
}
"""


def test_streams_used_while_the_program_ends(guest, traced, tmp_path):
    trace = traced([guest(AT_EXIT, "-fno-builtin")], cwd=tmp_path).ok().trace
    assert (tmp_path / "file").read_text() == "first late last "
    assert len(trace.of("fputs", file="file")) == 3
    assert len(trace.of("fclose", file="file")) == 1
