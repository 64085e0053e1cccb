// SPDX-License-Identifier: Apache-2.0
// Bytes at their place in files, by one kind of call. A file has one piece under way at most: the
// next one of the same file waits for it, and the caller fills another buffer meanwhile.
#pragma once

#include <memory>
#include <string>

#include "output/core/status.h"
#include "output/writer/buffer.h"
#include "output/writer/writer.h"

namespace weir::output::writer {

class Sink {
 public:
  virtual ~Sink() = default;
  // The file exists. Files are numbered by the caller.
  virtual Status open(int file, const std::string& path) = 0;
  // Takes the buffer; a written one goes to `written`. fails: WEIR_E_FILE, of this or an earlier
  // piece.
  virtual Status write(Piece piece, Buffers& written) = 0;
  // All pieces are with the system.
  virtual Status finish(Buffers& written) = 0;
  virtual Status close() = 0;
  // Why pieces are written by pwrite where a ring was to be tried; empty: they are not.
  virtual std::string note() const { return {}; }
};

Result<std::unique_ptr<Sink>> make_sink(Io io, int files);
// Whether such a sink writes records from where they are (Piece::lent).
constexpr bool takes_parts(Io io) {
  return io == Io::kAuto || io == Io::kPwrite || io == Io::kUring;
}

std::unique_ptr<Sink> make_pwrite_sink(int files);
std::unique_ptr<Sink> make_fwrite_sink(int files);
std::unique_ptr<Sink> make_aio_sink(int files);
// Null where liburing is not there, or the kernel refuses a ring.
std::unique_ptr<Sink> make_uring_sink(int files);
// io_uring as long as the kernel allows it, else pwrite.
std::unique_ptr<Sink> make_auto_sink(int files);

}  // namespace weir::output::writer
