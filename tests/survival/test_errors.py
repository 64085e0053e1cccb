# SPDX-License-Identifier: Apache-2.0
"""Results and errno are the program's own: of calls that fail, whatever their arguments, and of
calls that succeed."""

import pytest


@pytest.mark.parametrize("level", ["trace", "detail", "summary"])
def test_refused_arguments_give_what_they_give_without_weir(guest, traced, execute, tmp_path,
        level):
    program = guest("refused.c", "-w")
    (tmp_path / "plain").mkdir()
    plain = execute([program], cwd=tmp_path / "plain").ok()
    outcome = traced([program], level=level).ok()
    assert plain.stdout.count("\n") > 300
    assert outcome.done.stdout.splitlines() == plain.stdout.splitlines()


UNTOUCHED = """
#define KEEPS(what)            \\
  do {                         \\
    errno = 4321;              \\
    MUST((what) && errno == 4321); \\
  } while (0)
int main(int argc, char** argv) {
  int fd, far;
  char text[64], name[] = "tmpXXXXXX";
  struct iovec v = {text, 4};
  struct stat st;
  void* at;
  DIR* directory;
  off_t from = 0;
  KEEPS((fd = open("file", O_RDWR | O_CREAT | O_TRUNC, 0644)) >= 0);
  KEEPS(write(fd, "0123456789", 10) == 10);
  KEEPS(pwrite(fd, "0123456789", 10, 10) == 10);
  KEEPS(lseek(fd, 0, SEEK_SET) == 0);
  KEEPS(read(fd, text, 4) == 4);
  KEEPS(pread(fd, text, 4, 4) == 4);
  KEEPS(readv(fd, &v, 1) == 4);
  KEEPS(writev(fd, &v, 1) == 4);
  KEEPS(preadv(fd, &v, 1, 0) == 4);
  KEEPS(pwritev(fd, &v, 1, 0) == 4);
  KEEPS(preadv2(fd, &v, 1, 0, 0) == 4);
  KEEPS(pwritev2(fd, &v, 1, 0, 0) == 4);
  KEEPS(fsync(fd) == 0);
  KEEPS(fdatasync(fd) == 0);
  KEEPS(ftruncate(fd, 8192) == 0);
  KEEPS(posix_fallocate(fd, 0, 8192) == 0);
  KEEPS(posix_fadvise(fd, 0, 0, POSIX_FADV_NORMAL) == 0);
  KEEPS(fstat(fd, &st) == 0);
  KEEPS(stat("file", &st) == 0);
  KEEPS(lstat("file", &st) == 0);
  KEEPS(fstatat(AT_FDCWD, "file", &st, 0) == 0);
  KEEPS(access("file", R_OK) == 0);
  KEEPS((far = dup(fd)) > fd);
  KEEPS(dup2(fd, far) == far);
  KEEPS(fcntl(fd, F_GETFD) == 0);
  KEEPS((at = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)) != MAP_FAILED);
  KEEPS(msync(at, 8192, MS_SYNC) == 0);
  KEEPS(munmap(at, 8192) == 0);
  KEEPS(copy_file_range(fd, &from, far, NULL, 4, 0) >= 0);
  KEEPS(close(far) == 0);
  KEEPS((far = mkstemp(name)) >= 0);
  KEEPS(close(far) == 0);
  KEEPS(unlink(name) == 0);
  KEEPS(mkdir("directory", 0755) == 0);
  KEEPS((directory = opendir("directory")) != NULL);
  KEEPS(readdir(directory) != NULL && readdir(directory) != NULL && readdir(directory) == NULL);
  KEEPS(closedir(directory) == 0);
  KEEPS(rename("file", "directory/file") == 0);
  KEEPS(link("directory/file", "other") == 0);
  KEEPS(symlink("other", "symbolic") == 0);
  KEEPS(readlink("symbolic", text, 64) == 5);
  KEEPS(truncate("other", 5) == 0);
  KEEPS(unlink("directory/file") == 0);
  KEEPS(rmdir("directory") == 0);
  KEEPS(chdir(".") == 0);
  FILE* f;
  KEEPS((f = fopen("other", "r+")) != NULL);
  KEEPS(fread(text, 1, 2, f) == 2);
  KEEPS(fgetc(f) != EOF);
  KEEPS(fseek(f, 0, SEEK_SET) == 0);
  KEEPS(ftell(f) == 0);
  KEEPS(fwrite("ab", 1, 2, f) == 2);
  KEEPS(fprintf(f, "%d", 1) == 1);
  KEEPS(fflush(f) == 0);
  KEEPS(fclose(f) == 0);
  KEEPS(close(fd) == 0);
  pid_t child;
  KEEPS((child = fork()) >= 0);
  if (child == 0) {
    KEEPS(access("other", R_OK) == 0);
    _exit(0);
  }
  KEEPS(wait(NULL) == child);
  KEEPS((child = vfork()) >= 0 && (child != 0 || (_exit(0), 1)));
  KEEPS(wait(NULL) == child);
  return 0;
}
"""


@pytest.mark.parametrize("variables", [{}, {"level": "detail"}, {"WEIR_BUDGET": "64K"}])
def test_success_leaves_errno_alone(guest, traced, execute, tmp_path, variables):
    program = guest(UNTOUCHED)
    (tmp_path / "plain").mkdir()
    execute([program], cwd=tmp_path / "plain").ok()
    traced([program], **variables).ok()


OVERLAP = """
int main(void) {
  MUST(symlink("a-longer-target", "link") == 0);
  char both[64] = "link";
  MUST(readlink(both, both, 15) == 15 && memcmp(both, "a-longer-target", 15) == 0);
  char* edge = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MUST(mprotect(edge + 4096, 4096, PROT_NONE) == 0);
  char* last = strcpy(edge + 4096 - 5, "link");
  MUST(readlink(last, last, 5) == 5);  // no zero byte behind it any more
  return 0;
}
"""


def test_a_path_that_the_call_overwrites(guest, traced):
    traced([guest(OVERLAP, "-w")]).ok()
