// SPDX-License-Identifier: Apache-2.0
// How the collectors of a job bring encoded records (GRIB messages) into files that they share.
// Which process writes where is the only question that a writer answers; what a record contains,
// and which collector has which variable, is the caller's (collect.h, distribute.h).
//
// A collector appends the records of an output step, then calls end_step. In each file the records
// of a step stand behind all of earlier steps; within a step their order is open. A buffer of a
// file is filled while the one before it is on its way (double buffering).
//
// Threads: all calls of a rank in one thread. MPI needs no thread level.
// fails:  WEIR_E_FILE    a file could not be created, written or closed
//         WEIR_E_LOST    another rank did not answer for limit_s
//         WEIR_E_MPI     MPI refused something; the message has MPI's text
// After a failure a collector goes on with end_step and close, so that nobody waits for it; records
// are dropped. close returns the first failure of any rank, on all ranks.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "output/core/status.h"
#include "output/writer/buffer.h"

namespace weir::output::writer {

// Calls that write (sink/). Writers through MPI-IO ignore it. kAuto: io_uring as long as the kernel
// allows it, else pwrite.
enum class Io { kAuto, kPwrite, kFwrite, kAio, kUring };

// How long the bytes of a record stay as they are: until `append` returns, or until the second step
// after the record's has ended, or close has returned.
enum class Lifetime { kCall, kTwoSteps };

struct Options {
  std::vector<std::string> files;    // paths, the same on all ranks
  size_t buffer_bytes = 4 << 20;     // a fuller buffer goes on its way, 4 KiB to 1 GiB
  Io io = Io::kAuto;
  int writers = 1;                   // posix: processes that write; a file has one of them
  double limit_s = 60;               // for which another rank may be silent
};

// Which ranks do what; the same on all ranks.
struct Roles {
  std::vector<int> collectors, writers;  // by rank, in order; a rank may be both
};

class Writer {
 public:
  // [collective] Makes communicators of its own.
  Writer(MPI_Comm comm, Options options, Roles roles);
  virtual ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  const Roles& roles() const { return roles_; }
  bool collects() const { return at_ >= 0; }
  int collector() const { return at_; }  // index in roles().collectors, or -1
  double limit_s() const { return options_.limit_s; }

  // [collective] Create the files, empty.
  Status open();
  // [local, collectors] The bytes are copied, unless they stay and the writer writes them from
  // where they are.
  Status append(int file, std::span<const char> record, Lifetime lifetime = Lifetime::kCall);
  // [collective over the collectors]
  Status end_step();
  // [local] Of a rank that is no collector, instead of append and end_step: its work until all
  // collectors have begun to close.
  Status serve();
  // [collective] All that was appended is written; files are closed.
  Status close();
  // Why this rank has not used io_uring, or no longer, where Io::kAuto would; empty: it has.
  virtual std::string note() const { return {}; }

 protected:
  // A file's records of this step that go on their way now. Takes the buffers. is_last: there are
  // no more of this step; then `pieces` may be empty.
  virtual Status flush(std::vector<Piece> pieces, bool is_last) = 0;
  virtual Status open_files() = 0;
  virtual Status close_files() = 0;
  virtual Status serve_files() { return {}; }
  // Called at each append: what earlier steps wait for may be complete.
  virtual Status progress() { return {}; }
  // False: a flush is collective, so there is one a step, of all that the step has.
  virtual bool flushes_full_buffers() const { return true; }
  // Pieces may have records that are not copied.
  virtual bool takes_lent() const { return false; }
  // The rank creates the file in open_files.
  Status create(int file) const;

  int files() const { return static_cast<int>(options_.files.size()); }
  const std::string& path(int file) const { return options_.files[static_cast<size_t>(file)]; }

  const Options options_;
  const Roles roles_;
  MPI_Comm comm_ = MPI_COMM_NULL, collectors_ = MPI_COMM_NULL;
  int rank_ = 0;
  Buffers spare_;  // written ones, to be filled again

 private:
  Status keep(Status status);
  Status agree();

  int at_ = -1;
  std::vector<Buffer> filling_;
  std::vector<std::vector<std::span<const char>>> lent_;  // by file, of this step
  Status failed_;
};

// A writer by its name in writers.def. [collective] Communicators are made here.
Result<std::unique_ptr<Writer>> make_writer(std::string_view name, MPI_Comm comm, Options options);
Result<Io> io_named(std::string_view name);
// Of all writers, for messages and help.
std::string writer_names();

}  // namespace weir::output::writer
