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

// Before a call that waits: the parent's own figures, where the difference behind the call is the
// child's alone. They are left out where the call may come back at once without a child (programs
// poll), for tracers, and beside other threads.
class Waiting {
 public:
  explicit Waiting(int options) {
    const bool is_plain = (options & (WNOHANG | __WALL | __WCLONE)) == 0;
    has_figures_ =
        is_plain && may_note() && is_alone() && weir::trace::process().read_figures(&before_);
  }

  // The child `pid` has ended; signal: that killed it, or 0.
  void ended(int pid, int signal) const {
    if (!may_note() || (signal == 0 && !has_figures_)) return;
    const int error = errno;
    auto& me = weir::trace::process();
    weir::trace::Figures of_child{};
    const bool has = has_figures_ && me.read_figures(&of_child) && subtract(of_child, before_);
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
  static bool subtract(weir::trace::Figures& from, const weir::trace::Figures& before) {
    const uint64_t own = before.text_bytes;  // the first reading counts in the second
    if (from.io.rchar < before.io.rchar + own || from.io.wchar < before.io.wchar) return false;
    from.io.rchar -= before.io.rchar + own;
    from.io.wchar -= before.io.wchar;
    from.storage.read_bytes -= before.storage.read_bytes;
    from.storage.write_bytes -= before.storage.write_bytes;
    return true;
  }

  weir::trace::Figures before_{};
  bool has_figures_;
};

template <typename Real>
pid_t wait_by(int* status, int options, Real real) {
  const Waiting waiting(options);
  int own = 0;
  int* const to = status != nullptr ? status : &own;
  const pid_t pid = real(to);
  if (pid > 0 && (WIFSIGNALED(*to) || WIFEXITED(*to)))
    waiting.ended(pid, WIFSIGNALED(*to) ? WTERMSIG(*to) : 0);
  return pid;
}

}  // namespace

WEIR_HOOK(pid_t, wait, int* status) {
  return wait_by(status, 0, [](int* to) { return WEIR_REAL(wait)(to); });
}
WEIR_HOOK(pid_t, waitpid, pid_t which, int* status, int options) {
  return wait_by(status, options, [&](int* to) { return WEIR_REAL(waitpid)(which, to, options); });
}
WEIR_HOOK(pid_t, wait3, int* status, int options, rusage* usage) {
  return wait_by(status, options, [&](int* to) { return WEIR_REAL(wait3)(to, options, usage); });
}
WEIR_HOOK(pid_t, wait4, pid_t which, int* status, int options, rusage* usage) {
  return wait_by(status, options,
                 [&](int* to) { return WEIR_REAL(wait4)(which, to, options, usage); });
}
WEIR_HOOK(int, waitid, idtype_t type, id_t which, siginfo_t* about, int options) {
  if ((options & WEXITED) == 0 || (options & WNOWAIT) != 0 || about == nullptr)
    return WEIR_REAL(waitid)(type, which, about, options);
  const Waiting waiting(options);
  const int result = WEIR_REAL(waitid)(type, which, about, options);
  if (result != 0 || about->si_pid <= 0) return result;
  const bool killed = about->si_code == CLD_KILLED || about->si_code == CLD_DUMPED;
  if (killed || about->si_code == CLD_EXITED)
    waiting.ended(about->si_pid, killed ? about->si_status : 0);
  return result;
}
