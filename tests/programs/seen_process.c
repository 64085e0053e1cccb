// SPDX-License-Identifier: Apache-2.0
// What changes the process itself: process.cc. "child end=N": the process that the case started
// ended so (trace.md, 3.1).
#include "seen.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <threads.h>

// Runs the rest of the case in a child and tells how that ended.
static int in_child(const char *name) {
  const pid_t child = fork();
  if (child == 0) {
    mark("child", name);
    return 1;
  }
  int status = 0;
  waitpid(child, &status, 0);
  say("  status %x", (unsigned)status);
  return 0;
}

SEEN(_exit, "child end=2") {
  if (in_child(file)) CALL(_exit)(3);
}
SEEN(_Exit, "child end=2") {
  if (in_child(file)) CALL(_Exit)(4);
}
SEEN(quick_exit, "child end=2") {
  if (in_child(file)) CALL(quick_exit)(5);
}
SEEN(abort, "child end=4") {
  if (in_child(file)) CALL(abort)();
}
ALSO(abort, killed, "child end=0") {
  if (in_child(file)) kill(getpid(), SIGKILL);
}
SEEN(exit, "child end=1") {
  if (in_child(file)) CALL(exit)(6);
}

// Of what they wait for there are notes, which are no records.
#define WAITED(symbol, call)                                            \
  SEEN(symbol, "open; close") {                                         \
    int status = 0;                                                     \
    siginfo_t about;                                                    \
    memset(&about, 0, sizeof about);                                    \
    for (int signal = 0; signal <= SIGKILL; signal += SIGKILL) {        \
      const pid_t child = fork();                                       \
      if (child == 0) {                                                 \
        if (signal != 0) raise(signal);                                 \
        _exit(6);                                                       \
      }                                                                 \
      const long result = call;                                         \
      say("  %d %x %d", result == child || result == 0, (unsigned)status, about.si_status); \
      errno = 0;                                                        \
      tell(call);                                                       \
    }                                                                   \
    close(open(file, O_RDWR | O_CREAT, 0644));                          \
  }
WAITED(wait, CALL(wait)(&status))
WAITED(waitpid, CALL(waitpid)(-1, &status, 0))
WAITED(wait3, CALL(wait3)(&status, 0, NULL))
WAITED(wait4, CALL(wait4)(-1, &status, 0, NULL))
WAITED(waitid, CALL(waitid)(P_ALL, 0, &about, WEXITED))

SEEN(prctl, "open; close") {
  tell(CALL(prctl)(PR_GET_SECCOMP, 0, 0, 0, 0));
  close(open(file, O_RDWR | O_CREAT, 0644));
}
SEEN(chdir,
     "open on=.; open on=sub/chdir error=ENOENT; open on=sub/a; close on=sub/a; close on=.; access "
     "on=a error=ENOENT") {
  const int here = open(".", O_RDONLY | O_DIRECTORY);
  tell(CALL(chdir)("sub"));
  tell(open(file, O_RDONLY));
  close(open("a", O_RDONLY));
  if (fchdir(here) != 0) _exit(8);
  close(here);
  tell(access("a", F_OK));
}
SEEN(fchdir, "open on=.; open on=sub; open on=sub/a; close on=sub/a; close on=sub; close on=.") {
  const int here = open(".", O_RDONLY | O_DIRECTORY), there = open("sub", O_RDONLY | O_DIRECTORY);
  tell(CALL(fchdir)(there));
  close(open("a", O_RDONLY));
  tell(CALL(fchdir)(here));
  close(there);
  close(here);
}

SEEN(umask, "open; close") {
  tell(CALL(umask)(022));
  close(open(file, O_RDWR | O_CREAT, 0644));
}

static void *open_in_thread(void *file) {
  close(open(file, O_RDONLY));
  return NULL;
}
static int open_in_c_thread(void *file) { return open_in_thread(file) != NULL; }

// What the threads do stands in their own logs.
SEEN(pthread_create, "") {
  pthread_t thread;
  tell(CALL(pthread_create)(&thread, NULL, open_in_thread, (void *)file));
  pthread_join(thread, NULL);
}
static void *wait_for_end(void *unused) {
  pause();
  return unused;
}
SEEN(pthread_cancel, "") {
  pthread_t thread;
  pthread_create(&thread, NULL, wait_for_end, NULL);
  tell(CALL(pthread_cancel)(thread));
  pthread_join(thread, NULL);
}
SEEN(thrd_create, "") {
  thrd_t thread;
  tell(CALL(thrd_create)(&thread, open_in_c_thread, (void *)file));
  thrd_join(thread, NULL);
}
