// SPDX-License-Identifier: Apache-2.0
// Which function of netCDF-C, PnetCDF or HDF5 a record is of, by a number in the place of its
// offset (docs/formats/trace.md, 3.8). Names are declared here alone: none is in a trace.
#pragma once

#include <cstdint>

namespace weir::wire {

// The types in the names of netCDF's functions, by number; 0 is the function of any type. ubyte is
// netCDF-C's second name of uchar, of some families.
#define WEIR_NETCDF_TYPES(OF, ...)                                                           \
  OF(1, text, __VA_ARGS__) OF(2, schar, __VA_ARGS__) OF(3, uchar, __VA_ARGS__)               \
  OF(4, short, __VA_ARGS__) OF(5, ushort, __VA_ARGS__) OF(6, int, __VA_ARGS__)               \
  OF(7, uint, __VA_ARGS__) OF(8, long, __VA_ARGS__) OF(9, float, __VA_ARGS__)                \
  OF(10, double, __VA_ARGS__) OF(11, longlong, __VA_ARGS__) OF(12, ulonglong, __VA_ARGS__)   \
  OF(13, ubyte, __VA_ARGS__)

// The number of a family's function: 16 times the family's and the type's.
#define WEIR_FUNCTION(number, library, name, collective) name = number,
#define WEIR_TYPED(type, type_name, number, begin, end) \
  begin##_##type_name##end = 16 * (number) + (type),
#define WEIR_NETCDF(number, library, op, begin, end, shape, form) \
  begin##end = 16 * (number), WEIR_NETCDF_TYPES(WEIR_TYPED, number, begin, end)
enum class Function : uint16_t {
  unknown = 0,
#include "wire/functions.def"
#include "wire/netcdf.def"
};
#undef WEIR_NETCDF
#undef WEIR_TYPED
#undef WEIR_FUNCTION

// Whether the ranks make a call together, where it varies; in the bits above the function's number.
enum class Manner : uint32_t { unknown, independent = 1 << 16, collective = 2 << 16 };
constexpr uint32_t numbered(Function function, Manner manner = Manner::unknown) {
  return static_cast<uint32_t>(function) | static_cast<uint32_t>(manner);
}

}  // namespace weir::wire
