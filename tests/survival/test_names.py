# SPDX-License-Identifier: Apache-2.0
"""Names of files, however odd: each call is on the file that it was on."""

import os
import struct

NAMES = r"""
static void touch(int directory, const char* name) {
  int fd = openat(directory, name, O_RDWR | O_CREAT, 0644);
  MUST(fd >= 0 && write(fd, "x", 1) == 1 && close(fd) == 0);
}
int main(void) {
  touch(AT_FDCWD, "line\nbreak");
  touch(AT_FDCWD, "latin\xe9");
  char longest[256];
  memset(longest, 'n', 255);
  longest[255] = 0;
  touch(AT_FDCWD, longest);
  // A working directory deeper than PATH_MAX, reached step by step.
  memset(longest, 'd', 250);
  longest[250] = 0;
  for (int i = 0; i < 12; ++i) MUST(mkdir(longest, 0755) == 0 && chdir(longest) == 0);
  touch(AT_FDCWD, "deep");
  char path[4096] = "";
  for (int i = 0; i < 4080 / 2; ++i) strcat(path, "./");
  strcat(path, "far");
  touch(AT_FDCWD, path);
  for (int i = 0; i < 8; ++i) MUST(mkdir(longest, 0755) == 0 && chdir(longest) == 0);
  touch(AT_FDCWD, "deeper");  // getcwd says ENAMETOOLONG from PATH_MAX on
  int directory = open(".", O_PATH | O_DIRECTORY);
  MUST(directory >= 0 && chdir("/") == 0);
  touch(directory, "by_directory");
  struct stat st;
  MUST(stat("etc", &st) == 0);
  MUST(fstatat(directory, "", &st, AT_EMPTY_PATH) == 0 && S_ISDIR(st.st_mode));
  return 0;
}
"""


def test_odd_long_and_deep_names(guest, traced, tmp_path):
    trace = traced([guest(NAMES)], cwd=tmp_path).ok().trace
    cwd = str(tmp_path)
    (deep,) = {r.file for r in trace.of("write", file="deep")}
    writes = [r.file for r in trace.of("write")]
    assert writes[:4] == [f"{cwd}/line\nbreak", f"{cwd}/latin�", f"{cwd}/{'n' * 255}",
        f"{cwd}/{'/'.join(['d' * 250] * 12)}/deep"]
    assert writes[4].replace("/./", "/").replace("./", "") == deep[:-4] + "far"
    assert [name.rpartition("/")[2] for name in writes[5:]] == ["deeper", "by_directory"]
    assert len(trace.of("stat", file="/etc")) == 1


def test_names_are_kept_as_bytes(guest, traced, tmp_path):
    outcome = traced([guest(NAMES)], cwd=tmp_path).ok()
    (file,) = outcome.directory.glob("*.weir")
    text = os.fsencode(tmp_path) + b"/latin\xe9"
    data = file.read_bytes()
    at = data.index(text) - 4
    length, source = struct.unpack_from("<HH", data, at)  # the source has 3 bits, a digest the rest
    assert (length, source & 7) == (len(text), 1)



UNLINKED = """
int main(void) {
  int fd = open_new("file");
  MUST(unlink("file") == 0 && write(fd, "x", 1) == 1);
  int copy = dup(fd);
  MUST(write(copy, "xy", 2) == 2);
  MUST(mkdir("gone", 0755) == 0 && chdir("gone") == 0 && rmdir("../gone") == 0);
  MUST(open("nowhere", O_RDWR | O_CREAT, 0644) == -1 && errno == ENOENT);
  MUST(chdir("..") == 0 || errno == ENOENT);
  int other = open("/dev/null", O_WRONLY);
  MUST(write(other, "x", 1) == 1);
  return 0;
}
"""


def test_unlinked_files_and_a_removed_working_directory(guest, traced, tmp_path):
    trace = traced([guest(UNLINKED)], cwd=tmp_path).ok().trace
    assert [r.size for r in trace.of("write", file=f"{tmp_path}/file")] == [1, 2]
    assert [r.error for r in trace.of("open", file="nowhere")] == [2]


IN_REMOVED = """
int main(int argc, char** argv) {
  if (argc == 1) {
    MUST(mkdir("gone", 0755) == 0 && chdir("gone") == 0 && rmdir("../gone") == 0);
    execl("/proc/self/exe", "again", "there", (char*)NULL);
    return 1;
  }
  MUST(open("nowhere", O_RDWR | O_CREAT, 0644) == -1 && errno == ENOENT);
  int fd = open("/dev/null", O_WRONLY);
  return write(fd, "x", 1) == 1 ? 0 : 1;
}
"""


def test_a_program_that_starts_in_a_removed_working_directory(guest, traced):
    trace = traced([guest(IN_REMOVED)]).ok().trace
    assert len(trace.of("write", file="/dev/null")) == 1
    assert [r.file for r in trace.of("open") if r.failed] == ["nowhere"]


CHDIR_IN_THREADS = """
static void* walks(void* name) {
  for (int i = 0; i < 500; ++i) MUST(chdir(name) == 0);
  return NULL;
}
static void* writes(void* unused) {
  for (int i = 0; i < 500; ++i) {
    int fd = open("same", O_WRONLY | O_CREAT, 0644);
    MUST(fd >= 0 && write(fd, "x", 1) == 1 && close(fd) == 0);
  }
  return unused;
}
int main(void) {
  char a[PATH_MAX], b[PATH_MAX];
  MUST(mkdir("a", 0755) == 0 && mkdir("b", 0755) == 0 && realpath("a", a) && realpath("b", b));
  MUST(chdir(a) == 0);
  pthread_t t[3];
  pthread_create(&t[0], NULL, walks, a);
  pthread_create(&t[1], NULL, walks, b);
  pthread_create(&t[2], NULL, writes, NULL);
  for (int i = 0; i < 3; ++i) pthread_join(t[i], NULL);
  return 0;
}
"""


def test_chdir_in_threads(guest, traced, tmp_path):
    """Which directory it was nobody can say; that it was one of the two holds."""
    trace = traced([guest(CHDIR_IN_THREADS)], cwd=tmp_path).ok().trace
    writes = trace.of("write", file="same")
    assert len(writes) == 500
    assert {r.file for r in writes} <= {f"{tmp_path}/a/same", f"{tmp_path}/b/same"}


OWN_DIRECTORY = """
static void* moves(void* unused) {
  MUST(unshare(CLONE_FS) == 0 && chdir("a") == 0);
  return unused;
}
int main(void) {
  MUST(mkdir("a", 0755) == 0);
  pthread_t thread;
  MUST(pthread_create(&thread, NULL, moves, NULL) == 0 && pthread_join(thread, NULL) == 0);
  int fd = open("same", O_WRONLY | O_CREAT, 0644);
  MUST(fd >= 0 && write(fd, "x", 1) == 1 && close(fd) == 0);
  return 0;
}
"""


def test_a_thread_with_a_working_directory_of_its_own(guest, traced, tmp_path):
    """A limit: the last chdir of the process counts, though another thread made it for itself."""
    trace = traced([guest(OWN_DIRECTORY)], cwd=tmp_path).ok().trace
    assert (tmp_path / "same").exists()
    assert {r.file for r in trace.of("write", file="same")} == {f"{tmp_path}/a/same"}


INHERITED = """
int main(void) {
  char text[8];
  MUST(read(0, text, 5) == 5 && read(0, text, 8) == 2);
  return 0;
}
"""


def test_standard_input_redirected_by_the_shell(guest, traced, tmp_path):
    (tmp_path / "input").write_text("1234567")
    trace = traced(["sh", "-c", f"exec {guest(INHERITED)} < input"], cwd=tmp_path).ok().trace
    assert [(r.size, r.short) for r in trace.of("read", file=f"{tmp_path}/input")] == [(5, False),
        (2, True)]


def test_standard_input_from_a_pipe(guest, traced):
    trace = traced([guest(INHERITED)], input="1234567").ok().trace
    (process,) = trace.processes
    names = {r.file.split(":")[0] for r in trace.of("read") if r.process == process}
    assert names == {"pipe"}
