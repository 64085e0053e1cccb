// SPDX-License-Identifier: Apache-2.0
// The functions that make the writers of writers.def.
#pragma once

#include "output/writer/writer.h"

namespace weir::output::writer {

using Maker = std::unique_ptr<Writer>(MPI_Comm comm, const Options& options, const Roles& roles);

#define WEIR_WRITER(name, make, kind) Maker make;
#include "output/writer/writers.def"
#undef WEIR_WRITER

}  // namespace weir::output::writer
