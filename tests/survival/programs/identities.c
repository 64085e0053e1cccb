// SPDX-License-Identifier: Apache-2.0
// Calls that concern every thread of a process, while the threads of a layered library run in it.
// identities [FILE...]: writes 4 MiB to each file in pieces of 1 KiB and reads half of it again;
// then prints what each call gave. The last lines, "thread NAME SIGNALS", are the library's threads
// and the signals that each of them blocks.
#include <grp.h>
#include <sys/signalfd.h>

enum { kPiece = 1024, kPieces = 4096 };
static int held[16], files;

static void use(const char* path) {
  static char piece[kPiece];
  int fd = open_new(path);
  for (int i = 0; i < kPieces; ++i) {
    memset(piece, i, sizeof piece);
    MUST(write(fd, piece, sizeof piece) == sizeof piece);
  }
  for (int i = 0; i < kPieces / 2; ++i) {
    MUST(pread(fd, piece, sizeof piece, (off_t)i * kPiece) == sizeof piece && piece[0] == (char)i);
  }
  MUST(pwrite(fd, piece, sizeof piece, 0) == sizeof piece);  // something that is accepted and waits
  held[files++] = fd;
}

static void* blocked_read(void* fd) {
  char byte;
  read(*(int*)fd, &byte, 1);
  return NULL;
}

static void* waits(void* unused) {
  for (;;) pause();
  return unused;
}

static void set_ids(void) {
  gid_t own = getgid();
  printf("setgid %d\n", setgid(getgid()));
  printf("setegid %d\n", setegid(getegid()));
  printf("setregid %d\n", setregid(getgid(), getegid()));
  printf("setresgid %d\n", setresgid(getgid(), getegid(), getegid()));
  printf("setgroups %d\n", setgroups(1, &own));
  printf("initgroups %d\n", initgroups("root", getgid()));
  printf("setuid %d\n", setuid(getuid()));
  printf("seteuid %d\n", seteuid(geteuid()));
  printf("setreuid %d\n", setreuid(getuid(), geteuid()));
  printf("setresuid %d\n", setresuid(getuid(), geteuid(), geteuid()));
}

static void fork_and_exec(void) {
  int status = -1;
  pid_t child = fork();
  if (child == 0) _exit(setgid(getgid()) == 0 ? 7 : 1);
  MUST(waitpid(child, &status, 0) == child);
  printf("fork %d\n", WEXITSTATUS(status));
  child = fork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", "exit 8", NULL);
    _exit(1);
  }
  MUST(waitpid(child, &status, 0) == child);
  printf("exec %d\n", WEXITSTATUS(status));
  printf("system %d\n", WEXITSTATUS(system("exit 9")));
  child = fork();
  if (child == 0) {
    struct rlimit none = {0, 0};  // the signal's bit of a dump is as it would be; no file
    setrlimit(RLIMIT_CORE, &none);
    use("dumped.dat");
    raise(SIGSEGV);
  }
  MUST(waitpid(child, &status, 0) == child);
  printf("crash %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : -1);
}

static void cancel(void) {
  int pipe_ends[2];
  MUST(pipe(pipe_ends) == 0);
  pthread_t reader;
  void* how = NULL;
  pthread_create(&reader, NULL, blocked_read, &pipe_ends[0]);
  usleep(10000);
  pthread_cancel(reader);
  pthread_join(reader, &how);
  printf("cancel %d\n", how == PTHREAD_CANCELED);
  pthread_create(&reader, NULL, waits, NULL);
  pthread_cancel(reader);
  pthread_join(reader, &how);
  printf("cancel %d\n", how == PTHREAD_CANCELED);
}

// Signals to the process that all of its own threads hold back: nobody else may take one.
static void wait_for_signals(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigaddset(&set, SIGRTMIN);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  int by_wait = 0, by_timed = 0, by_descriptor = 0;
  int descriptor = signalfd(-1, &set, SFD_NONBLOCK);
  struct timespec limit = {5, 0};
  for (int i = 0; i < 200; ++i) {
    int number = 0;
    kill(getpid(), SIGUSR1);
    by_wait += sigwait(&set, &number) == 0 && number == SIGUSR1;
    kill(getpid(), SIGRTMIN);
    by_timed += sigtimedwait(&set, NULL, &limit) == SIGRTMIN;
    struct signalfd_siginfo info;
    kill(getpid(), SIGUSR1);
    by_descriptor += read(descriptor, &info, sizeof info) == sizeof info;
  }
  printf("sigwait %d sigtimedwait %d signalfd %d\n", by_wait, by_timed, by_descriptor);
}

static void name_threads(void) {
  DIR* all = opendir("/proc/self/task");
  for (struct dirent* one; (one = readdir(all)) != NULL;) {
    char path[300], line[256], name[64] = "", blocked[64] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/status", one->d_name);
    FILE* f = one->d_name[0] == '.' ? NULL : fopen(path, "r");
    if (f == NULL) continue;
    while (fgets(line, sizeof line, f) != NULL) {
      sscanf(line, "Name: %63s", name);
      sscanf(line, "SigBlk: %63s", blocked);
    }
    fclose(f);
    if (strncmp(name, "weir-", 5) == 0) fprintf(stderr, "thread %s %s\n", name, blocked);
  }
  closedir(all);
}

static void all_of_it(void) {
  set_ids();
  fork_and_exec();
  cancel();
  wait_for_signals();
  set_ids();
}

#ifdef WITH_MPI
#include <mpi.h>
int main(int argc, char** argv) {
  static char piece[kPiece];
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int fd = open(argv[1], O_RDONLY);
  for (int i = 0; i < kPieces; ++i) MUST(read(fd, piece, sizeof piece) == sizeof piece);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < 20; ++i, usleep(5000)) name_threads();
  set_ids();
  MPI_Barrier(MPI_COMM_WORLD);
  close(fd);
  MPI_Finalize();
  return 0;
}
#else
int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IONBF, 0);
  for (int i = 1; i < argc; ++i) use(argv[i]);
  for (int i = 0; i < 20; ++i, usleep(5000)) name_threads();
  all_of_it();
  for (int i = 0; i < files; ++i) {
    static char piece[kPiece];
    MUST(pread(held[i], piece, sizeof piece, 0) == sizeof piece &&
         piece[0] == (char)(kPieces / 2 - 1));
    MUST(close(held[i]) == 0);
  }
  return 0;
}
#endif
