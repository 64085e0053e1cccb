// SPDX-License-Identifier: Apache-2.0
// A file created through MPI-IO, for the sake of its hints: that is how Lustre and others get their
// stripes. Nothing is written this way.
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "output/transport/mpi/mpi_team.h"

namespace weir::output {

Status MpiTeam::create_file(const std::string& path,
                            const std::vector<std::pair<std::string, std::string>>& hints) {
  MPI_Info info = MPI_INFO_NULL;
  WEIR_TRY(mpi_status(MPI_Info_create(&info), "MPI_Info_create"));
  for (const auto& [name, value] : hints) MPI_Info_set(info, name.c_str(), value.c_str());
  // A stripe is given at creation alone: a file that is there, of a run before, goes first.
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    MPI_Info_free(&info);
    return {WEIR_E_FILE, "cannot replace " + path + ": " + std::strerror(errno)};
  }
  MPI_File file = MPI_FILE_NULL;
  const int code =
      MPI_File_open(MPI_COMM_SELF, path.c_str(), MPI_MODE_CREATE | MPI_MODE_WRONLY, info, &file);
  MPI_Info_free(&info);
  if (code == MPI_SUCCESS) return mpi_status(MPI_File_close(&file), "MPI_File_close");
  const Status failed = mpi_status(code, "MPI_File_open");
  return {WEIR_E_FILE, "cannot create " + path + " with hints: " + failed.message()};
}

}  // namespace weir::output
