// SPDX-License-Identifier: Apache-2.0
#include "output/reduce/accumulator.h"

#include <string.h>

namespace weir::output {

namespace {

bool sums(weir_operation operation) {
  return operation == WEIR_MEAN || operation == WEIR_ACCUMULATE;
}

template <typename Visit>
void with_type(Type type, Visit visit) {
  switch (type) {
    case WEIR_FLOAT32: return visit(float{});
    case WEIR_FLOAT64: return visit(double{});
    case WEIR_INT32: return visit(int32_t{});
    case WEIR_INT64: return visit(int64_t{});
    case WEIR_INT16: return visit(int16_t{});
    case WEIR_INT8: return visit(int8_t{});
  }
}

// NaN is missing when the missing value is NaN.
template <typename T>
struct Missing {
  explicit Missing(const std::optional<Number>& value)
      : there(value.has_value()), is_nan(there && value->real != value->real) {
    if (there) mark = value->as<T>();
  }
  bool operator()(T v) const { return there && (v == mark || (is_nan && v != v)); }
  bool there, is_nan;
  T mark{};
};

template <typename T>
void add_sums(const T* in, int64_t count, bool first_step, const Missing<T>& missing, double* sum,
              uint32_t* counts) {
  if (!missing.there) {
    for (int64_t i = 0; i < count; ++i)
      sum[i] = first_step ? static_cast<double>(in[i]) : sum[i] + static_cast<double>(in[i]);
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    if (first_step) sum[i] = 0, counts[i] = 0;
    if (missing(in[i])) continue;
    sum[i] += static_cast<double>(in[i]);
    ++counts[i];
  }
}

// A NaN among the values stays: it is what the model has computed.
template <typename T>
void add_extremes(const T* in, int64_t count, bool first_step, bool least,
                  const Missing<T>& missing, T* out) {
  if (first_step) {
    memcpy(out, in, static_cast<size_t>(count) * sizeof(T));
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    if (missing(in[i])) continue;
    if (missing(out[i]) || in[i] != in[i] || (least ? in[i] < out[i] : in[i] > out[i]))
      out[i] = in[i];
  }
}

}  // namespace

Accumulator::Accumulator(weir_operation operation, Type type, std::optional<Number> missing,
                         int64_t elements)
    : operation_(operation), type_(type), missing_(missing) {
  const auto n = static_cast<size_t>(elements);
  if (sums(operation)) {
    sums_.resize(n);
    if (missing) counts_.resize(n);
  } else {
    extremes_.resize(n * size_of(type));
  }
}

int64_t Accumulator::memory_bytes(weir_operation operation, Type type, bool missing,
                                  int64_t elements) {
  if (operation == WEIR_INSTANT) return 0;
  return elements * static_cast<int64_t>(sums(operation)
                                             ? sizeof(double) + (missing ? sizeof(uint32_t) : 0)
                                             : size_of(type));
}

Type Accumulator::result_type(weir_operation operation, Type type) {
  return sums(operation) ? WEIR_FLOAT64 : type;
}

void Accumulator::add(const void* values, int64_t first, int64_t count) {
  with_type(type_, [&](auto zero) {
    using T = decltype(zero);
    const T* in = static_cast<const T*>(values);
    const Missing<T> missing(missing_);
    if (sums(operation_)) {
      add_sums(in, count, steps_ == 0, missing, sums_.data() + first,
               counts_.empty() ? nullptr : counts_.data() + first);
    } else {
      add_extremes(in, count, steps_ == 0, operation_ == WEIR_MINIMUM, missing,
                   reinterpret_cast<T*>(extremes_.data()) + first);
    }
  });
}

void Accumulator::result(int64_t first, int64_t count, double missing_sum, void* to) const {
  if (!sums(operation_)) {
    const size_t bytes = size_of(type_);
    memcpy(to, extremes_.data() + static_cast<size_t>(first) * bytes,
           static_cast<size_t>(count) * bytes);
    return;
  }
  double* out = static_cast<double*>(to);
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(first + i);
    const double values = counts_.empty() ? static_cast<double>(steps_) : counts_[at];
    out[i] = values == 0 ? missing_sum : operation_ == WEIR_MEAN ? sums_[at] / values : sums_[at];
  }
}

}  // namespace weir::output
