// SPDX-License-Identifier: Apache-2.0
// Calls that change whom the process acts as, and its handlers: no records, and all results are
// those without weir. Each sets what is there already.
#include "seen.h"

#include <sched.h>
#include <signal.h>

#define ACTS_AS(symbol, ...)              \
  SEEN(symbol, "open; close") {           \
    tell(CALL(symbol)(__VA_ARGS__));      \
    close(open(file, O_RDWR, 0644));      \
  }
ACTS_AS(setuid, getuid())
ACTS_AS(seteuid, geteuid())
ACTS_AS(setreuid, getuid(), geteuid())
ACTS_AS(setresuid, getuid(), geteuid(), getuid())
ACTS_AS(setgid, getgid())
ACTS_AS(setegid, getegid())
ACTS_AS(setregid, getgid(), getegid())
ACTS_AS(setresgid, getgid(), getegid(), getgid())
ACTS_AS(unshare, 0)
ACTS_AS(setns, -1, 0)

static volatile int came;
static void handler(int signal) { came += signal; }

#define SETS_ACTION(symbol)                                          \
  SEEN(symbol, "open; close") {                                      \
    struct sigaction to = {.sa_handler = handler}, was;              \
    tell(CALL(symbol)(SIGUSR1, &to, NULL));                          \
    tell(raise(SIGUSR1));                                            \
    to.sa_handler = SIG_DFL;                                         \
    tell(CALL(symbol)(SIGUSR1, &to, &was));                          \
    say("  %d %d", was.sa_handler == handler, came);                 \
    close(open(file, O_RDWR, 0644));                                 \
  }
int __sigaction(int, const struct sigaction *, struct sigaction *);
SETS_ACTION(sigaction)
SETS_ACTION(__sigaction)

typedef void (*set_handler)(int);
set_handler bsd_signal(int, set_handler);
#define SETS_SIGNAL(symbol)                                          \
  SEEN(symbol, "open; close") {                                      \
    tell(CALL(symbol)(SIGUSR2, handler) == SIG_DFL);                 \
    tell(raise(SIGUSR2));                                            \
    say("  %d", came);                                               \
    CALL(symbol)(SIGUSR2, SIG_DFL);                                  \
    close(open(file, O_RDWR, 0644));                                 \
  }
SETS_SIGNAL(signal)
SETS_SIGNAL(bsd_signal)
SETS_SIGNAL(sysv_signal)
SETS_SIGNAL(__sysv_signal)
SETS_SIGNAL(ssignal)
SETS_SIGNAL(sigset)
