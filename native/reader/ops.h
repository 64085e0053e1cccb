// SPDX-License-Identifier: Apache-2.0
// What the reader must know of each operation, as a table by value.
#pragma once

#include <array>

#include "wire/format.h"
#include "wire/functions.h"

namespace weir::reader {

enum class Treatment : uint8_t { unknown, call, fortran, silent, thread, sync };

struct OpInfo {
  const char* name = nullptr;
  wire::Layer layer = wire::Layer::marker;
  char op_class = 0;
  Treatment treatment = Treatment::unknown;
  const char* size = nullptr;  // what the size of a record holds (wire/sizes.def)
};

constexpr Treatment treatment_of(unsigned value, wire::Layer layer, char op_class) {
  if (value == unsigned(wire::Op::kThread)) return Treatment::thread;
  if (value == unsigned(wire::Op::kSync)) return Treatment::sync;
  if (op_class == 'X') return Treatment::silent;
  return layer == wire::Layer::fortran ? Treatment::fortran : Treatment::call;
}

constexpr const char* size_of(wire::Layer layer, char op_class) {
  if (op_class == 'X') return layer == wire::Layer::layers ? "statistic" : "data";
  return op_class == 'R' || op_class == 'W' ? "data" : "length";
}

constexpr std::array<OpInfo, 256> make_ops() {
  std::array<OpInfo, 256> ops{};
#define WEIR_OP(value, constant, op_name, op_layer, cls)                                  \
  ops[value] = {op_name, wire::Layer::op_layer, #cls[0],                                  \
                treatment_of(value, wire::Layer::op_layer, #cls[0]),                      \
                size_of(wire::Layer::op_layer, #cls[0])};
#include "wire/ops.def"
#undef WEIR_OP
#define WEIR_SIZE(constant, meaning) ops[unsigned(wire::Op::constant)].size = #meaning;
#include "wire/sizes.def"
#undef WEIR_SIZE
  return ops;
}

inline constexpr std::array<OpInfo, 256> kOps = make_ops();

// Operations that take the program's time with I/O: no markers, nothing of class X.
inline constexpr std::array<bool, 256> kIsIo = [] {
  std::array<bool, 256> counts{};
  for (size_t op = 0; op < 256; ++op) {
    counts[op] = kOps[op].treatment == Treatment::call || kOps[op].treatment == Treatment::fortran;
  }
  return counts;
}();

// Names of MPI's routines by value; null where there is none.
constexpr std::array<const char*, 256> make_mpi_routines() {
  std::array<const char*, 256> routines{};
#define WEIR_MPI_ROUTINE(value, name) routines[value] = "MPI_" #name;
#include "wire/mpi.def"
#undef WEIR_MPI_ROUTINE
  return routines;
}

inline constexpr auto kMpiRoutines = make_mpi_routines();

// A function of netCDF-C, PnetCDF or HDF5 by the number in its records. collective: 'y', 'n' or 'v'
// (it varies).
struct FunctionInfo {
  uint32_t number;
  wire::Layer layer;
  const char* name;
  char collective;
};

// Of a family: PnetCDF's functions without "_all" are independent; netCDF-C's as nc_var_par_access
// has chosen.
constexpr char collective_of(wire::Layer library, const char* end) {
  return library == wire::Layer::netcdf ? 'v' : end[0] != 0 ? 'y' : 'n';
}

inline constexpr FunctionInfo kFunctions[] = {
#define WEIR_FUNCTION(number, library, name, collective) \
  {uint32_t(wire::Function::name), wire::Layer::library, #name, #collective[0]},
#include "wire/functions.def"
#undef WEIR_FUNCTION
#define WEIR_OF_FAMILY(name, library, end)                       \
  {uint32_t(wire::Function::name), wire::Layer::library, #name, \
   collective_of(wire::Layer::library, #end)},
#define WEIR_TYPED(type, type_name, library, begin, end) \
  WEIR_OF_FAMILY(begin##_##type_name##end, library, end)
#define WEIR_NETCDF(number, library, op, begin, end, shape, form) \
  WEIR_OF_FAMILY(begin##end, library, end)                        \
  WEIR_NETCDF_TYPES(WEIR_TYPED, library, begin, end)
#include "wire/netcdf.def"
#undef WEIR_NETCDF
#undef WEIR_TYPED
#undef WEIR_OF_FAMILY
};

struct LayerInfo {
  const char* name = nullptr;
  struct {
    const char* name = nullptr;
    const char* unit = nullptr;
  } statistics[32];
};

constexpr std::array<LayerInfo, wire::kLayersEnd - wire::kNotes> make_layers() {
  std::array<LayerInfo, wire::kLayersEnd - wire::kNotes> layers{};
#define WEIR_LAYER(value, layer_name) layers[value].name = layer_name;
#define WEIR_STATISTIC(layer, index, statistic_name, unit_name) \
  layers[layer].statistics[index] = {statistic_name, unit_name};
#include "wire/layers.def"
#undef WEIR_LAYER
#undef WEIR_STATISTIC
  return layers;
}

inline constexpr auto kLayers = make_layers();

// What a record or counter of a call may bear: the program's own layers, event layers, notes about
// layers.
constexpr bool is_known_layer(uint8_t layer) {
  return layer <= uint8_t(wire::Layer::mpi) ||
         (layer >= uint8_t(wire::Layer::output) && layer <= uint8_t(wire::Layer::hdf5)) ||
         (layer >= wire::kEvents && layer < wire::kLayersEnd);
}

}  // namespace weir::reader
