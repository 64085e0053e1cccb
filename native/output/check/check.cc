// SPDX-License-Identifier: Apache-2.0
// libweir-output-check.so: what `weir output check` and `weir output recover` call. The same code
// as libweir's, without MPI.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "output/config/explain.h"
#include "output/engine/file_lock.h"
#include "output/engine/inherit.h"
#include "output/format/modules.h"
#include "output/format/reader.h"

namespace {

using namespace weir::output;

Result<std::string> checked(const char* path, int64_t ranks) {
  Result<Source> source = load_source(path);
  if (!source.ok()) return source.status();
  Result<Config> config = parse_config(*source);
  if (!config.ok()) return config.status();
  if (Status status = check_ranks(config->settings, ranks); !status.ok()) {
    return Status(WEIR_E_CONFIG, config->source + ": " + status.message());
  }
  return explain(*config, ranks);
}

Result<int64_t> steps_in(const std::string& path) {
  Result<std::unique_ptr<Reader>> reader = open_reader(path);
  if (!reader.ok()) return reader.status();
  Result<Found> time = (*reader)->find("time");
  return time.ok() ? Result<int64_t>(time->records) : Result<int64_t>(time.status());
}

// The name of a file that has the temporary one, .NAME.weir-part or .NAME.weir-part.2, at its end;
// else "".
std::string final_name(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1), mark = ".weir-part";
  const size_t at = name.rfind(mark);
  const std::string rest = at == std::string::npos ? "" : name.substr(at + mark.size());
  const bool generation = rest.size() > 1 && rest[0] == '.' &&
                          rest.find_first_not_of("0123456789", 1) == std::string::npos;
  return name[0] != '.' || at == std::string::npos || (!rest.empty() && !generation)
             ? ""
             : path.substr(0, path.size() - name.size()) + name.substr(1, at - 1);
}

std::string lock_of(const std::string& path) {
  const std::string final = final_name(path);
  return temporary_path(final.empty() ? path : final, 0) + ".lock";
}

// A writer that lives holds the lock of its file, and its journal: what it is about to write must
// not be written by another.
Status check_nobody_writes(const std::string& path) {
  if (const std::string holder = FileLock::holder(lock_of(path)); !holder.empty()) {
    return {WEIR_E_ORDER, path + ": " + holder + " is still writing it (it holds " + lock_of(path) +
                              "); recover it when that has ended, or with --force when you know "
                              "that it will never write again"};
  }
  const std::string journal = path + ".journal";
  const int fd = ::open(journal.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return errno == ENOENT
               ? Status()
               : Status(WEIR_E_FILE, "cannot open " + journal + ": " + std::strerror(errno));
  const bool held = ::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(fd);
  return held ? Status(WEIR_E_ORDER, path + ": a process is still writing it (it holds " + journal +
                                         "); recover it when the job has ended, or with --force "
                                         "when you know that it will never write again")
              : Status();
}

Result<std::string> recovered(const std::string& path, bool force) {
  const std::string journal = path + ".journal";
  const bool has_journal = ::access(journal.c_str(), F_OK) == 0;
  if (!force) WEIR_TRY(check_nobody_writes(path));
  if (has_journal) {
    std::string why;
    const netcdf::Module* module = netcdf_module(&why);
    if (module == nullptr) return Status(WEIR_E_FORMAT, why);
    netcdf::Why refused = {};
    if (!module->recover(path.c_str(), refused)) return Status(WEIR_E_FILE, refused.text);
  }
  Result<int64_t> steps = steps_in(path);
  if (!steps.ok()) {
    return Status(steps.status().code(), steps.status().message() +
                                             "; expected a file that libweir writes, by its final "
                                             "or its temporary name, .NAME.weir-part");
  }
  const std::string final = final_name(path);
  const std::string use = final.empty() ? "" : "; to use it: mv " + path + " " + final;
  return path + ": " + std::to_string(*steps) +
         (*steps == 1 ? " finished step" : " finished steps") +
         (has_journal ? "; what its journal said of the last one is done, the journal is removed"
                      : "; there is no journal, nothing was to do") +
         use + "\n";
}

int answer(Result<std::string> result, char** text) {
  *text = strdup((result.ok() ? *result : result.status().message()).c_str());
  return result.status().code();
}

}  // namespace

// A weir_status; *text gets the explanation or the error's message, to be given to
// weir_output_check_free. ranks: 0 for not known.
extern "C" WEIR_OUTPUT_API int weir_output_check(const char* path, int64_t ranks, char** text) {
  return answer(checked(path, ranks), text);
}

// The same of a file that a killed job left. force: also one that a process seems to write still.
extern "C" WEIR_OUTPUT_API int weir_output_recover(const char* path, int force, char** text) {
  return answer(recovered(path, force != 0), text);
}

extern "C" WEIR_OUTPUT_API void weir_output_check_free(char* text) { std::free(text); }
