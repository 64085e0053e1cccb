// SPDX-License-Identifier: Apache-2.0
#include "output/writer/sink/sink.h"

#include <algorithm>

namespace weir::output::writer {
namespace {

struct Named {
  const char* name;
  Io io;
  std::unique_ptr<Sink> (*make)(int files);
};

constexpr Named kSinks[] = {
    {"auto", Io::kAuto, make_auto_sink},
    {"pwrite", Io::kPwrite, make_pwrite_sink},
    {"fwrite", Io::kFwrite, make_fwrite_sink},
    {"aio", Io::kAio, make_aio_sink},
    {"uring", Io::kUring, make_uring_sink},
};

}  // namespace

Result<Io> io_named(std::string_view name) {
  for (const Named& one : kSinks) {
    if (one.name == name) return one.io;
  }
  return Status{WEIR_E_ARGUMENT, "there is no way to write named " + std::string(name) +
                                     "; expected auto, pwrite, fwrite, aio or uring"};
}

Result<std::unique_ptr<Sink>> make_sink(Io io, int files) {
  const auto* one = std::ranges::find(kSinks, io, &Named::io);
  if (auto sink = one->make(files)) return sink;
  return Status{WEIR_E_FILE,
                "io_uring is not to be had: liburing was not there when this was built, or the "
                "kernel refuses a ring; use auto or pwrite"};
}

}  // namespace weir::output::writer
