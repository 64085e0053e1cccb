// SPDX-License-Identifier: Apache-2.0
// Random calls on a few files, from a seed. Says what each returned (as one sum), how many of each
// kind it made, and, in the file `truth`, where every transfer really began: found by system calls
// that nobody sees.
enum { kSlots = 12, kNames = 6 };
enum {
  OPEN,
  OPENAT,
  CLOSE,
  DUP,
  DUP2,
  READ,
  WRITE,
  READV,
  WRITEV,
  PREAD,
  PWRITE,
  LSEEK,
  FTRUNCATE,
  RENAME,
  UNLINK,
  STAT,
  FCNTL,
  FSYNC,
  ACCESS,
  COPY,
  FORK,
  CHDIR,
  kOps
};
static const char* names[kOps] = {"open",   "openat", "close",     "dup",    "dup2",
                                  "read",   "write",  "readv",     "writev", "pread",
                                  "pwrite", "lseek",  "ftruncate", "rename", "unlink",
                                  "stat",   "fcntl",  "fsync",     "access", "copy_file_range",
                                  "fork",   "chdir"};
static uint64_t seed, sum, counted[kOps];
static int slot[kSlots];
static char buffer[3000];
static int truth, directory;

static long hidden(long n, long a, long b, long c) {
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(n), "D"(a), "S"(b), "d"(c)
                   : "rcx", "r11", "memory");
  return result;
}

static uint32_t chance(uint32_t below) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(seed >> 33) % below;
}

static long note(int op, long result) {
  int error = errno;
  ++counted[op];
  sum = (sum ^ (uint64_t)result ^ (uint64_t)(result < 0 ? error : 0) << 20) * 0x9e3779b97f4a7c15u;
  return result;
}

static long place(int fd, int writes) {
  struct stat st;
  if (writes && (hidden(SYS_fcntl, fd, F_GETFL, 0) & O_APPEND))
    return hidden(SYS_fstat, fd, (long)&st, 0) == 0 ? st.st_size : -1;
  return hidden(SYS_lseek, fd, 0, SEEK_CUR);
}

static void transfer(int op, int fd) {
  size_t n = chance(sizeof buffer);
  struct iovec v[2] = {{buffer, n / 2}, {buffer + n / 2, n - n / 2}};
  int writes = op == WRITE || op == WRITEV || op == PWRITE;
  long at = op == PREAD || op == PWRITE ? chance(20000) : place(fd, writes);
  if (op == PWRITE && (hidden(SYS_fcntl, fd, F_GETFL, 0) & O_APPEND)) op = WRITE, at = place(fd, 1);
  long result = op == READ    ? read(fd, buffer, n)
                : op == WRITE ? write(fd, buffer, n)
                : op == READV ? readv(fd, v, 2)
                : op == WRITEV ? writev(fd, v, 2)
                : op == PREAD ? pread(fd, buffer, n, at)
                              : pwrite(fd, buffer, n, at);
  note(op, result);
  char line[80];
  int length = snprintf(line, sizeof line, "%s %ld %ld\n", names[op], result < 0 ? -1 : at,
                        result < 0 ? (long)n : result);
  hidden(SYS_write, truth, (long)line, length);
}

static void one(int op) {
  char name[8] = {'f', (char)('0' + chance(kNames)), 0},
       other[8] = {'f', (char)('0' + chance(kNames)), 0};
  static const int modes[] = {
      O_RDONLY, O_RDWR, O_RDWR | O_CREAT, O_WRONLY | O_CREAT | O_APPEND, O_RDWR | O_CREAT | O_TRUNC,
      O_WRONLY};
  int mine = chance(kSlots), fd = slot[mine];
  struct stat st;
  switch (op) {
    case OPEN:
    case OPENAT:
      if (fd >= 0) note(CLOSE, close(fd));
      slot[mine] = (int)note(op, op == OPEN ? open(name, modes[chance(6)], 0644)
                                            : openat(directory, name, modes[chance(6)], 0644));
      break;
    case CLOSE: note(op, close(fd)), slot[mine] = -1; break;
    case DUP:
      if (chance(4) != 0) break;
      if (slot[(mine + 1) % kSlots] >= 0) note(CLOSE, close(slot[(mine + 1) % kSlots]));
      slot[(mine + 1) % kSlots] = (int)note(op, dup(fd));
      break;
    case DUP2:
      if (chance(4) == 0 && slot[(mine + 1) % kSlots] >= 0)
        note(op, dup2(fd, slot[(mine + 1) % kSlots]));
      break;
    case LSEEK: note(op, lseek(fd, chance(30000), chance(3))); break;
    case FTRUNCATE: note(op, ftruncate(fd, chance(20000))); break;
    case RENAME: note(op, rename(name, other)); break;
    case UNLINK: note(op, unlink(name)); break;
    case STAT: note(op, stat(name, &st)); break;
    case FCNTL: note(op, fcntl(fd, F_SETFL, chance(2) ? O_APPEND : 0)); break;
    case FSYNC: note(op, fsync(fd)); break;
    case ACCESS: note(op, access(name, F_OK)); break;
    case COPY:
      note(op, copy_file_range(fd, NULL, slot[(mine + 1) % kSlots], NULL, chance(500), 0));
      break;
    case FORK:
      if (chance(40) == 0) {
        pid_t child = fork();
        if (child == 0) {
          (void)!write(fd, buffer, 10);
          _exit(0);
        }
        waitpid(child, NULL, 0);
        note(op, 0);
      }
      break;
    case CHDIR: note(op, chdir(counted[CHDIR] % 2 == 0 ? "sub" : "..")); break;
    default: transfer(op, fd);
  }
}

int main(int argc, char** argv) {
  seed = strtoull(argv[1], NULL, 10);
  MUST(mkdir("sub", 0755) == 0 && chdir("sub") == 0 && mkdir("sub", 0755) == 0 &&
       (directory = open(".", O_RDONLY)) >= 0);
  truth = (int)hidden(SYS_open, (long)argv[2], O_WRONLY | O_CREAT | O_TRUNC, 0644);
  truth = (int)hidden(SYS_fcntl, truth, F_DUPFD, 500);
  for (int i = 0; i < kSlots; ++i) slot[i] = -1;
  for (long n = atol(argv[3]); n > 0; --n) {
    int op = chance(kOps);
    if (op == CHDIR && (chance(3) != 0 || counted[CHDIR] > 8)) continue;
    one(op);
  }
  char line[80];
  for (int i = 0; i < kOps; ++i)
    hidden(SYS_write, 1, (long)line, snprintf(line, sizeof line, "%s %lu\n", names[i], counted[i]));
  hidden(SYS_write, 1, (long)line, snprintf(line, sizeof line, "sum %lx\n", sum));
  return 0;
}
