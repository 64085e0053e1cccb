// SPDX-License-Identifier: Apache-2.0
// Calls that change whom the process acts as, and its handlers of signals: neither is recorded.
// Layers know by them what they would otherwise have to ask the kernel at each call.
#include <sched.h>
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/credentials.h"
#include "base/section.h"
#include "hook/real.h"

namespace base = weir::base;

// Before and after: another thread may ask in between.
#define WEIR_ACTS_AS(symbol, parameters, ...)             \
  WEIR_HOOK(int, symbol, parameters) {                    \
    base::credentials_change();                           \
    const int result = WEIR_REAL(symbol)(__VA_ARGS__);    \
    base::credentials_change();                           \
    return result;                                        \
  }
WEIR_ACTS_AS(setuid, WEIR_LIST(uid_t user), user)
WEIR_ACTS_AS(seteuid, WEIR_LIST(uid_t user), user)
WEIR_ACTS_AS(setreuid, WEIR_LIST(uid_t real, uid_t effective), real, effective)
WEIR_ACTS_AS(setresuid, WEIR_LIST(uid_t real, uid_t effective, uid_t saved), real, effective, saved)
WEIR_ACTS_AS(setgid, WEIR_LIST(gid_t group), group)
WEIR_ACTS_AS(setegid, WEIR_LIST(gid_t group), group)
WEIR_ACTS_AS(setregid, WEIR_LIST(gid_t real, gid_t effective), real, effective)
WEIR_ACTS_AS(setresgid, WEIR_LIST(gid_t real, gid_t effective, gid_t saved), real, effective, saved)
WEIR_ACTS_AS(unshare, WEIR_LIST(int what), what)  // in a new user namespace the numbers are others
WEIR_ACTS_AS(setns, WEIR_LIST(int fd, int what), fd, what)

namespace {

using Handler = void (*)(int);

void before(int signal, Handler handler) {
  if (handler != SIG_DFL && handler != SIG_IGN) base::before_handler(signal);
}

}  // namespace

#define WEIR_SIGACTION(symbol)                                                             \
  WEIR_HOOK(int, symbol, int signal, const struct sigaction* to, struct sigaction* was) { \
    if (to != nullptr) before(signal, to->sa_handler);                                     \
    return WEIR_REAL(symbol)(signal, to, was);                                             \
  }
WEIR_SIGACTION(sigaction)
WEIR_SIGACTION(__sigaction)

#define WEIR_SIGNAL(symbol)                                \
  WEIR_HOOK(Handler, symbol, int signal, Handler handler) { \
    before(signal, handler);                               \
    return WEIR_REAL(symbol)(signal, handler);             \
  }
WEIR_SIGNAL(signal)
WEIR_SIGNAL(bsd_signal)
WEIR_SIGNAL(sysv_signal)
WEIR_SIGNAL(__sysv_signal)
WEIR_SIGNAL(ssignal)
WEIR_SIGNAL(sigset)
