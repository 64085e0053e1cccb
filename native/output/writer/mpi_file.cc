// SPDX-License-Identifier: Apache-2.0
#include "output/writer/mpi_file.h"

namespace weir::output::writer {

Status MpiFileWriter::of_file(int code, int file, const char* call) const {
  const Status status = from_mpi(code, call);
  return status.ok() ? status : Status(WEIR_E_FILE, path(file) + ": " + status.message());
}

Status MpiFileWriter::open_files() {
  for (int file = 0; file < files(); ++file)
    WEIR_TRY(of_file(MPI_File_open(collectors_, path(file).c_str(), MPI_MODE_WRONLY, MPI_INFO_NULL,
                                   &opened(file)),
                     file, "MPI_File_open"));
  return {};
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
