// SPDX-License-Identifier: Apache-2.0
// What both writers through MPI-IO share: files that the collectors have open together.
#pragma once

#include "output/writer/wait.h"
#include "output/writer/writer.h"

namespace weir::output::writer {

class MpiFileWriter : public Writer {
 protected:
  MpiFileWriter(MPI_Comm comm, const Options& options, const Roles& roles)
      : Writer(comm, options, roles), opened_(options.files.size(), MPI_FILE_NULL) {}

  // MPI counts in int.
  static constexpr size_t kLongest = INT32_MAX;

  Status open_files() override;
  Status close_files() override;
  Status of_file(int code, int file, const char* call) const;
  MPI_File& opened(int file) { return opened_[static_cast<size_t>(file)]; }

 private:
  Status open_file(int file);

  std::vector<MPI_File> opened_;
};

}  // namespace weir::output::writer
