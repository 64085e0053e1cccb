// SPDX-License-Identifier: Apache-2.0
// Two reports: a line on standard error, and one in the node's directory, from which `weir run`
// learns that its command has lost bytes (python/weir/capture/drain.py; the write-back daemon adds
// what it could not write to the same file).
#include "layers/machinery/stack/losses.h"

#include <errno.h>
#include <fcntl.h>

#include "base/syscall.h"
#include "base/text.h"
#include "layers/machinery/node/place.h"
#include "layers/machinery/node/private.h"
#include "layers/machinery/stack/private.h"
#include "layers/machinery/stack/process.h"

namespace weir::stack {
namespace {

// Lost bytes by file, for the report at the end. Past the last row they are counted there.
struct Loss {
  uint32_t state;  // 0 free, 1 being filled, 2 there
  int error;
  uint64_t device, inode;
  uint64_t bytes;
  char path[512];
};
// Standard error as it was when something was first lost: many programs close theirs before
// libraries end.
constinit int voice = -1;
constinit uint32_t has_voice = 0;

void keep_voice() {
  if (base::exchange(&has_voice, 1u) != 0) return;
  const long copy = base::system_call(SYS_fcntl, 2, F_DUPFD_CLOEXEC, 3);
  if (!base::failed(copy)) keep_private(static_cast<int>(copy), &voice);
}

constexpr int kLosses = 32;
constinit Loss losses[kLosses] = {};

// By its path, too: files of the layer pack lie in memory that they have one after the other.
bool is_same_loss(const Loss& loss, const File* f, int error) {
  return loss.device == f->device && loss.inode == f->inode && loss.error == error &&
         strncmp(loss.path, f->path, sizeof loss.path - 1) == 0;
}

struct ErrorText {
  int error;
  const char *name, *text;
};
constexpr ErrorText kErrors[] = {
    {EIO, "EIO", "input/output error"},
    {ENOSPC, "ENOSPC", "no space left on device"},
    {EDQUOT, "EDQUOT", "disk quota exceeded"},
    {EFBIG, "EFBIG", "file too large"},
    {ESTALE, "ESTALE", "stale file handle"},
    {EROFS, "EROFS", "read-only file system"},
    {ENOMEM, "ENOMEM", "no memory"},
    {EBADF, "EBADF", "descriptor closed unseen"},
};

const ErrorText* text_of(int error) {
  for (const ErrorText& one : kErrors) {
    if (one.error == error) return &one;
  }
  return nullptr;
}

// As layers/writeback/daemon/errors.cc: paths need not be UTF-8.
void add_quoted(base::Writer& to, const char* text) {
  constexpr char kDigits[] = "0123456789abcdef";
  for (; *text != 0; ++text) {
    const auto byte = static_cast<unsigned char>(*text);
    const bool is_plain = byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
    const char digits[2] = {kDigits[byte >> 4], kDigits[byte & 15]};
    if (is_plain) to.add(base::Text{text, 1});
    else to.add(byte >= 0x80 ? "\\udc" : "\\u00").add(base::Text{digits, 2});
  }
}

// The file of losses of the job on this node, opened to append; an error: there can be none.
long open_report() {
  if (node::own_directory() == nullptr) return -ENOENT;
  const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
  const long fd = node::open_inside("errors", flags);
  return fd == -ENOENT && node::renew_directory() ? node::open_inside("errors", flags) : fd;
}

void add_to_report(const Loss& loss, uint64_t bytes) {
  if (bytes == 0 || base::sealed()) return;
  const base::HoldsDescriptor held;
  const long fd = open_report();
  if (base::failed(fd)) return;
  char line[6 * sizeof loss.path + 160];
  base::Writer text(line, sizeof line);
  add_quoted(text.add("{\"path\": \""), loss.path);
  const ErrorText* const what = text_of(loss.error);
  text.add("\", \"errno\": ").add_number(static_cast<uint64_t>(loss.error));
  text.add(", \"error\": \"").add(what != nullptr ? what->name : "?");
  text.add("\", \"lost_bytes\": ").add_number(bytes).add(", \"pid\": ");
  text.add_number(static_cast<uint64_t>(base::system_call(SYS_getpid)));
  text.add(", \"run\": ").add_number(node::run_number()).add("}\n");
  base::say(static_cast<int>(fd), line, text.view().size);
  base::close_fd(static_cast<int>(fd));
}

void print_loss(const Loss& loss, uint64_t bytes, int fd) {
  char message[1024];
  base::Writer text(message, sizeof message);
  text.add("weir: ").add(loss.path).add(": ").add_number(bytes);
  text.add(" bytes accepted were not written: ");
  if (const ErrorText* what = text_of(loss.error); what != nullptr) text.add(what->text);
  else text.add("error ").add_number(static_cast<uint64_t>(loss.error));
  text.add("\n");
  base::say(voice >= 0 ? voice : fd, text.view().data, text.view().size);
}

}  // namespace

void count_loss(const File* f, int error, uint64_t bytes) {
  for (Loss& loss : losses) {
    uint32_t state = base::load(&loss.state);
    if (state == 0 && base::compare_exchange(&loss.state, &state, 1u)) {
      loss.error = error;
      loss.device = f->device;
      loss.inode = f->inode;
      loss.bytes = bytes;
      base::Writer(loss.path, sizeof loss.path).add(f->path);
      keep_voice();
      base::store(&loss.state, 2u);
      return;
    }
    const bool last = &loss == &losses[kLosses - 1];
    if (state == 2 && (last || is_same_loss(loss, f, error))) {
      base::fetch_add(&loss.bytes, bytes);
      return;
    }
  }
}

void report_losses(int fd) {
  for (Loss& loss : losses) {
    if (base::load(&loss.state) != 2) continue;
    const uint64_t bytes = base::load(&loss.bytes);
    if (losses_are_said) print_loss(loss, bytes, fd);
    add_to_report(loss, bytes);
    base::store(&loss.state, 1u);
  }
}

}  // namespace weir::stack
