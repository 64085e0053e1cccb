// SPDX-License-Identifier: Apache-2.0
#include "testfs/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "testfs/operations.h"
#include "testfs/options.h"
#include "testfs/workers.h"

namespace weir::testfs {
namespace {

constexpr unsigned kLargestRequest = 1 << 20;
constexpr int kRequestsEnd_ms = 500;  // how long an unmount waits for what is still open

int ready_pipe = -1;

int failed(const char* format, ...) {
  va_list values;
  va_start(values, format);
  fputs("weir-testfs: ", stderr);
  vfprintf(stderr, format, values);
  fputc('\n', stderr);
  va_end(values);
  return 1;
}

void want(fuse_conn_info* connection, unsigned what, bool wanted) {
  if (wanted) connection->want |= connection->capable & what;
  else connection->want &= ~what;
}

void do_init(void* mount, fuse_conn_info* connection) {
  connection->max_read = connection->max_write = kLargestRequest;
  connection->max_background = 512;
  connection->congestion_threshold = 384;
  connection->time_gran = 1;
  want(
      connection,
      FUSE_CAP_ASYNC_READ | FUSE_CAP_ASYNC_DIO | FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_ATOMIC_O_TRUNC,
      true);
  want(connection, FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_EXPORT_SUPPORT, true);
  want(connection, FUSE_CAP_WRITEBACK_CACHE, static_cast<Mount*>(mount)->writeback);
  // Attributes are asked for one by one, as other file systems are asked. Splices gain nothing
  // where the answer has to wait. Who writes to a set-user-id file loses the bit by a request of
  // the kernel's, as our daemon may be root.
  want(connection, FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_HANDLE_KILLPRIV,
       false);
  want(connection, FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE, false);
  (void)!write(ready_pipe, "+", 1);
}

std::string escaped(const std::string& value) {  // commas and backslashes of a mount option's value
  std::string text;
  for (char c : value) {
    if (c == ',' || c == '\\') text += '\\';
    text += c;
  }
  return text;
}

fuse_session* new_session(Mount& mount, const MountArguments& arguments) {
  fuse_lowlevel_ops operations = {};
  operations.init = do_init;
  set_data_operations(operations);
  set_attribute_operations(operations);
  set_name_operations(operations);
  set_directory_operations(operations);
  std::string options =
      "subtype=weir-testfs,default_permissions,max_read=" + std::to_string(kLargestRequest);
  if (geteuid() == 0) options += ",allow_other";
  options += ",fsname=" + escaped(arguments.backing);
  std::string program = "weir-testfs", dash_o = "-o";
  char* argv[] = {program.data(), dash_o.data(), options.data(), nullptr};
  fuse_args args = FUSE_ARGS_INIT(3, argv);
  return fuse_session_new(&args, &operations, sizeof operations, &mount);
}

// A descriptor for every file the kernel knows of. How many there can be.
size_t raise_descriptor_limit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  rlimit more = {1 << 20, 1 << 20};
  if (limit.rlim_max < more.rlim_max && setrlimit(RLIMIT_NOFILE, &more) == 0) return more.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

// The other half of the descriptors is for open files. In a thread of its own: the kernel locks the
// directory, which a request in service may have locked.
void forget_idle_files(fuse_session* session, Inodes& inodes, size_t descriptors) {
  for (;;) {
    for (const IdleName& idle : inodes.wait_for_idle(descriptors / 2))
      fuse_lowlevel_notify_inval_entry(session, idle.parent, idle.name.c_str(), idle.name.size());
  }
}

bool check_device() {
  if (geteuid() != 0 && access("/usr/bin/fusermount3", X_OK) == 0)
    return true;  // it opens the device for us
  const int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (fd >= 0) {
    close(fd);
    return true;
  }
  if (errno == ENOENT)
    failed(
        "there is no /dev/fuse: this kernel or container has no FUSE (modprobe fuse, or start the "
        "container with --device /dev/fuse)");
  else if (errno == ENODEV)
    failed("/dev/fuse is there, but the kernel has no FUSE (modprobe fuse)");
  else
    failed("/dev/fuse may not be opened: %s (run as root or give this user the device)",
           strerror(errno));
  return false;
}

void unmount(const std::string& directory) {
  if (geteuid() == 0) {
    umount2(directory.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
    return;
  }
  const pid_t child = fork();
  if (child == 0) {
    execl("/usr/bin/fusermount3", "fusermount3", "-u", "-z", "-q", "--", directory.c_str(),
          nullptr);
    _exit(127);
  }
  if (child > 0) waitpid(child, nullptr, 0);
}

sigset_t ending_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, number);
  return set;
}

// Until the file system is unmounted, or unmounts it: when a signal asks for it or the owner ends.
void watch(const MountArguments& arguments, int ended) {
  const sigset_t signals = ending_signals();
  const int signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
  const int owner_fd =
      arguments.owner > 0 ? static_cast<int>(syscall(SYS_pidfd_open, arguments.owner, 0)) : -1;
  // An owner that has gone already cannot be waited for.
  const bool orphan = arguments.owner > 0 && owner_fd < 0 && errno == ESRCH;
  pollfd fds[] = {{ended, POLLIN, 0}, {signal_fd, POLLIN, 0}, {owner_fd, POLLIN, 0}};
  while (!orphan && poll(fds, 3, -1) < 0 && errno == EINTR) {
  }
  if (fds[0].revents != 0) return;
  unmount(arguments.directory);
  while (poll(fds, 1, kRequestsEnd_ms) < 0 && errno == EINTR) {
  }
}

void let_go_of_terminal() {
  const int null = open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; ++fd) dup2(null, fd);
  if (null > 2) close(null);
}

int serve(const MountArguments& arguments, State& state) {
  Mount& mount = *new Mount{.state = state, .server = {}, .inodes = Inodes(state)};
  mount.writeback = state.options.writeback != 0;
  if (!mount.server.open(state.options, arguments.bucket_path))
    return failed("%s: %s", arguments.bucket_path.c_str(), strerror(errno));
  if (!mount.inodes.open_root(arguments.backing.c_str()))
    return failed("%s: %s", arguments.backing.c_str(), strerror(errno));
  const sigset_t signals = ending_signals();
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  const size_t descriptors = raise_descriptor_limit();
  umask(0);
  fuse_session* session = new_session(mount, arguments);
  if (session == nullptr) return failed("libfuse refuses the mount's options");
  if (fuse_session_mount(session, arguments.directory.c_str()) != 0)
    return failed("cannot mount on %s", arguments.directory.c_str());
  const int ended = eventfd(0, EFD_CLOEXEC);
  Workers workers(session, static_cast<unsigned>(state.options.threads.load()), ended);
  if (!workers.start()) {
    unmount(arguments.directory);
    return failed("no thread can be started: %s", strerror(errno));
  }
  std::thread(forget_idle_files, session, std::ref(mount.inodes), descriptors).detach();
  let_go_of_terminal();
  (void)!chdir("/");
  watch(arguments, ended);
  mount.server.close();
  _exit(0);  // whatever is still asked for fails: the kernel ends the connection with its last
             // descriptor
}

// 0, 1, or 2 for an option that makes no sense.
int set_up(const MountArguments& arguments, State* state) {
  if (state == nullptr) return failed("%s: %s", arguments.state_path.c_str(), strerror(errno));
  state->mount_at = keep_name(*state, arguments.directory);
  state->backing_at = keep_name(*state, arguments.backing);
  set_defaults(state->options);
  std::string message;
  for (const std::string& option : arguments.options) {
    if (set_option(*state, option, When::mounting, &message)) continue;
    failed("%s: %s", option.c_str(), message.c_str());
    return 2;
  }
  return 0;
}

// Waits for the first byte of the child, which says that the mount is there.
bool wait_for(pid_t child, int ready) {
  char answer = 0;
  ssize_t got;
  while ((got = read(ready, &answer, 1)) < 0 && errno == EINTR) {
  }
  if (got == 1) return true;
  waitpid(child, nullptr, 0);
  return false;
}

}  // namespace

int mount_in_background(const MountArguments& arguments) {
  if (!check_device()) return 1;
  State* state = create_state(arguments.state_path.c_str());
  int status = set_up(arguments, state);
  int ready[2];
  if (status == 0 && pipe2(ready, O_CLOEXEC) != 0) status = failed("no pipe: %s", strerror(errno));
  if (status == 0) {
    const pid_t child = fork();
    if (child < 0) return failed("no process can be started: %s", strerror(errno));
    if (child == 0) {
      close(ready[0]);
      ready_pipe = ready[1];
      setsid();
      state->pid = static_cast<uint64_t>(getpid());
      state->start_ticks = start_ticks_of(state->pid);
      _exit(serve(arguments, *state));
    }
    close(ready[1]);
    if (wait_for(child, ready[0])) return 0;
    status = 1;
  }
  unlink(arguments.state_path.c_str());
  return status;
}

}  // namespace weir::testfs
