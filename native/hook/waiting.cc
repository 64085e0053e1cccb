// SPDX-License-Identifier: Apache-2.0
// Waiting for children: a child that was killed, and one that left no records, cannot state its end
// and its bytes. Its parent does (docs/formats/trace.md, section 3.2): the kernel adds the figures
// of a child to those of its parent in the call that waits for it.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "hook/observe.h"
#include "base/syscall.h"

extern "C" {
extern char __libc_single_threaded
    __attribute__((weak));  // NOLINT(bugprone-reserved-identifier) glibc 2.32 and later
}

using namespace weir::hook;
namespace base = weir::base;

namespace {

constexpr uint64_t kNotableBytes = 64u << 10;  // of a child that was not killed

// Of children that were noted; a call may be interrupted by a handler that waits for others.
constinit weir::trace::Figures noted{};

// Whether a call that waits, with these words of waitid and WNOHANG, will find a child.
bool is_there(idtype_t type, id_t which, int options) {
  siginfo_t about{};
  constexpr int kWaits = WEXITED | WSTOPPED | WCONTINUED | WNOHANG;
  const long result =
      base::system_call(SYS_waitid, type, static_cast<long>(which),
                        reinterpret_cast<long>(&about), (options & kWaits) | WEXITED | WNOWAIT);
  return result == 0 && about.si_pid != 0;
}

// Before a call that waits: the parent's own figures, where the difference behind the call is the
// child's alone. They are left out where the call will come back without a child (programs poll),
// for tracers, and beside other threads.
class Waiting {
 public:
  Waiting(idtype_t type, id_t which, int options) {
    has_figures_ = (options & (__WALL | __WCLONE)) == 0 && may_note() && is_alone() &&
                   ((options & WNOHANG) == 0 || is_there(type, which, options)) &&
                   weir::trace::process().read_figures(&before_);
    noted_before_ = noted;
  }

  // The child `pid` has ended; signal: that killed it, or 0.
  void ended(int pid, int signal) const {
    if (!may_note() || (signal == 0 && !has_figures_)) return;
    const int error = errno;
    auto& me = weir::trace::process();
    weir::trace::Figures of_child{};
    const bool has = has_figures_ && me.read_figures(&of_child) && subtract(of_child);
    if (signal != 0 || (has && is_notable(of_child))) {
      me.note_end(static_cast<uint64_t>(pid), base::ticks(), static_cast<uint64_t>(signal),
                  has ? &of_child : nullptr);
    }
    errno = error;
  }

 private:
  static bool may_note() {
    return base::load_relaxed(&weir::trace::pulse.alive) != 0 &&
           !weir::trace::thread_log.in_vfork_child && !base::sealed();
  }
  static bool is_alone() {
    return &__libc_single_threaded != nullptr && base::load_relaxed(&__libc_single_threaded) != 0;
  }
  static bool is_notable(const weir::trace::Figures& f) {
    return f.io.rchar + f.io.wchar > kNotableBytes ||
           f.storage.read_bytes + f.storage.write_bytes > kNotableBytes;
  }
  // False where the figures do not rise: they are those of another process then (a handler forked).
  // What the handlers noted meanwhile is not the child's either.
  bool subtract(weir::trace::Figures& from) const {
    weir::trace::Figures before = before_;
    const uint64_t own = before.text_bytes;  // the first reading counts in the second
    before.io.rchar += own + noted.io.rchar - noted_before_.io.rchar;
    before.io.wchar += noted.io.wchar - noted_before_.io.wchar;
    before.storage.read_bytes += noted.storage.read_bytes - noted_before_.storage.read_bytes;
    before.storage.write_bytes += noted.storage.write_bytes - noted_before_.storage.write_bytes;
    if (from.io.rchar < before.io.rchar || from.io.wchar < before.io.wchar) return false;
    const uint64_t readings = own + from.text_bytes;
    from.io.rchar -= before.io.rchar;
    from.io.wchar -= before.io.wchar;
    from.storage.read_bytes -= before.storage.read_bytes;
    from.storage.write_bytes -= before.storage.write_bytes;
    noted.io.rchar += from.io.rchar + readings;
    noted.io.wchar += from.io.wchar;
    noted.storage.read_bytes += from.storage.read_bytes;
    noted.storage.write_bytes += from.storage.write_bytes;
    return true;
  }

  weir::trace::Figures before_{}, noted_before_{};
  bool has_figures_;
};

template <typename Real>
pid_t wait_by(pid_t which, int* status, int options, Real real) {
  // As the manual of waitpid has it: any child, one of the caller's group, of another, or one.
  const Waiting waiting(which == -1 ? P_ALL : which <= 0 ? P_PGID : P_PID,
                        static_cast<id_t>(which < 0 ? -which : which), options);
  int own = 0;
  int* const to = status != nullptr ? status : &own;
  const pid_t pid = real(to);
  if (pid > 0 && (WIFSIGNALED(*to) || WIFEXITED(*to)))
    waiting.ended(pid, WIFSIGNALED(*to) ? WTERMSIG(*to) : 0);
  return pid;
}

}  // namespace

WEIR_HOOK(pid_t, wait, int* status) {
  return wait_by(-1, status, 0, [](int* to) { return WEIR_REAL(wait)(to); });
}
WEIR_HOOK(pid_t, waitpid, pid_t which, int* status, int options) {
  return wait_by(which, status, options,
                 [&](int* to) { return WEIR_REAL(waitpid)(which, to, options); });
}
WEIR_HOOK(pid_t, wait3, int* status, int options, rusage* usage) {
  return wait_by(-1, status, options,
                 [&](int* to) { return WEIR_REAL(wait3)(to, options, usage); });
}
WEIR_HOOK(pid_t, wait4, pid_t which, int* status, int options, rusage* usage) {
  return wait_by(which, status, options,
                 [&](int* to) { return WEIR_REAL(wait4)(which, to, options, usage); });
}
WEIR_HOOK(int, waitid, idtype_t type, id_t which, siginfo_t* about, int options) {
  if ((options & WEXITED) == 0 || (options & WNOWAIT) != 0 || about == nullptr)
    return WEIR_REAL(waitid)(type, which, about, options);
  const Waiting waiting(type, which, options);
  const int result = WEIR_REAL(waitid)(type, which, about, options);
  if (result != 0 || about->si_pid <= 0) return result;
  const bool killed = about->si_code == CLD_KILLED || about->si_code == CLD_DUMPED;
  if (killed || about->si_code == CLD_EXITED)
    waiting.ended(about->si_pid, killed ? about->si_status : 0);
  return result;
}
