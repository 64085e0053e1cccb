// SPDX-License-Identifier: Apache-2.0
#include "output/engine/inherit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "output/format/posix_file.h"
#include "output/format/publish.h"

namespace weir::output {

namespace {

constexpr size_t kPiece = 32 << 20;

// A file system's clock may be this coarse.
constexpr double kTick_s = 0.05;

double seconds(const timespec& t) {
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

Result<double> changed_at(const PosixFile& file) {
  struct stat of;
  if (fstat(file.descriptor(), &of) != 0) return file_error("look at", file.path(), errno);
  return seconds(of.st_mtim);
}

Status copy_bytes(const PosixFile& in, PosixFile& out,
                  const std::function<void()>& on_pause) {
  std::vector<char> buffer;  // for file systems between which the kernel does not copy
  for (int64_t at = 0;; on_pause()) {
    ssize_t n = -1;
    if (buffer.empty()) {
      off_t from = at, to = at;
      n = copy_file_range(in.descriptor(), &from, out.descriptor(), &to, kPiece, 0);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno != EXDEV && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
        return file_error("copy", in.path(), errno);
      if (n < 0) buffer.resize(kPiece);
    }
    if (!buffer.empty()) {
      do {
        n = pread(in.descriptor(), buffer.data(), buffer.size(), at);
      } while (n < 0 && errno == EINTR);
      if (n < 0) return file_error("read", in.path(), errno);
      WEIR_TRY(out.write_at(buffer.data(), static_cast<size_t>(n), at));
    }
    if (n == 0) return {};
    at += n;
  }
}

// The one who had the file may wake meanwhile and write what it had begun, metadata in the middle
// of a change among it: then all is copied anew.
Status copy_file(const std::string& from, const std::string& to,
                 const std::function<void()>& on_pause) {
  constexpr int kAttempts = 20;
  Result<PosixFile> in = PosixFile::open(from, O_RDONLY);
  if (!in.ok()) return in.status();
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Result<double> before = changed_at(*in);
    if (!before.ok()) return before.status();
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (const double age = seconds(now) - *before; age >= 0 && age < kTick_s)
      usleep(static_cast<useconds_t>(kTick_s * 1e6));
    Result<PosixFile> out = PosixFile::open(to, O_WRONLY | O_CREAT | O_TRUNC);
    if (!out.ok()) return out.status();
    WEIR_TRY(copy_bytes(*in, *out, on_pause));
    WEIR_TRY(out->close());
    Result<double> after = changed_at(*in);
    if (!after.ok()) return after.status();
    if (*before == *after) return {};
  }
  return {WEIR_E_FILE, "cannot take " + from + " over: it goes on changing"};
}

Status copy_store(const std::filesystem::path& from, const std::filesystem::path& to,
                  const std::function<void()>& on_pause) {
  std::error_code error;
  std::filesystem::create_directory(to, error);
  if (error) return file_error("create", to.string(), error.value());
  for (std::filesystem::directory_iterator at(from, error), end; !error && at != end;
       at.increment(error)) {
    const std::filesystem::path& path = at->path();
    if (path.extension() == ".part") continue;  // never became true
    std::error_code ignored;
    WEIR_TRY(at->is_directory(ignored)
                 ? copy_store(path, to / path.filename(), on_pause)
                 : copy_file(path.string(), (to / path.filename()).string(), on_pause));
  }
  return error ? file_error("read", from.string(), error.value()) : Status();
}

}  // namespace

std::string temporary_path(const std::string& path, int generation) {
  const size_t name = path.rfind('/') + 1;
  const std::string first = path.substr(0, name) + "." + path.substr(name) + ".weir-part";
  return generation == 0 ? first : first + "." + std::to_string(generation + 1);
}

Status inherit_file(const std::string& from, const std::string& to,
                    const std::function<void()>& on_pause) {
  WEIR_TRY(discard_file(to));
  WEIR_TRY(discard_file(to + ".journal"));
  std::error_code ignored;
  if (std::filesystem::is_directory(from, ignored)) return copy_store(from, to, on_pause);
  if (std::filesystem::exists(from + ".journal", ignored))
    WEIR_TRY(copy_file(from + ".journal", to + ".journal", on_pause));
  return copy_file(from, to, on_pause);
}

Status discard_before(const std::string& path, int generation) {
  Status result;
  for (int g = 0; g < generation; ++g) {
    for (const char* suffix : {"", ".journal"}) {
      Status s = discard_file(temporary_path(path, g) + suffix);
      if (result.ok()) result = s;
    }
  }
  return result;
}

}  // namespace weir::output
