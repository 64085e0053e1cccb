// SPDX-License-Identifier: Apache-2.0
#include "output/writer/mpi_file.h"

#include <unistd.h>

#include <vector>

namespace weir::output::writer {
namespace {

// A link to a file beside it, with the process in its name; the file itself where there are no
// links. The first rank makes it and removes it.
class OwnName {
 public:
  // [collective]
  OwnName(const std::string& path, MPI_Comm comm) : path_(path) {
    const size_t name = path.rfind('/') + 1;
    char host[64] = {};
    (void)gethostname(host, sizeof host - 1);
    const std::string link = path.substr(0, name) + "." + host + "-" + std::to_string(getpid()) +
                             "." + path.substr(name);
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    is_made_ = rank == 0 && symlink(path.substr(name).c_str(), link.c_str()) == 0;
    std::vector<char> text(is_made_ ? link.begin() : path.begin(),
                           is_made_ ? link.end() : path.end());
    auto bytes = static_cast<int>(text.size());
    MPI_Bcast(&bytes, 1, MPI_INT, 0, comm);
    text.resize(static_cast<size_t>(bytes));
    MPI_Bcast(text.data(), bytes, MPI_BYTE, 0, comm);
    path_.assign(text.begin(), text.end());
  }
  ~OwnName() {
    if (is_made_) unlink(path_.c_str());
  }
  OwnName(const OwnName&) = delete;
  OwnName& operator=(const OwnName&) = delete;
  const char* path() const { return path_.c_str(); }

 private:
  std::string path_;
  bool is_made_ = false;
};

}  // namespace

Status MpiFileWriter::of_file(int code, int file, const char* call) const {
  const Status status = from_mpi(code, call);
  return status.ok() ? status : Status(WEIR_E_FILE, path(file) + ": " + status.message());
}

Status MpiFileWriter::open_files() {
  for (int file = 0; file < files(); ++file) WEIR_TRY(open_file(file));
  return {};
}

// Open MPI (ompio) guards a shared pointer by a semaphore whose name is the last component of the
// path alone. Jobs that write files of one name in different directories of a node would share it:
// while one of them opens, its ranks may get two semaphores, or one that a killed job has left
// locked. A link with a name of its own leads to the file while it is opened.
Status MpiFileWriter::open_file(int file) {
  OwnName name(path(file), collectors_);
  const int code = MPI_File_open(collectors_, name.path(), MPI_MODE_WRONLY, MPI_INFO_NULL,
                                 &opened(file));
  // All have opened it when the first one removes the link.
  WEIR_TRY(from_mpi(MPI_Barrier(collectors_), "MPI_Barrier"));
  return of_file(code, file, "MPI_File_open");
}

Status MpiFileWriter::close_files() {
  Status first;
  for (int file = 0; file < files(); ++file) {
    if (opened(file) == MPI_FILE_NULL) continue;
    const Status status = of_file(MPI_File_close(&opened(file)), file, "MPI_File_close");
    if (first.ok()) first = status;
  }
  return first;
}

}  // namespace weir::output::writer
