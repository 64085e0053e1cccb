// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "layers/machinery/rules/rules.h"

namespace weir::rules {

using base::Text;

uint64_t argument(const LayerSpec& layer, uint32_t at, uint64_t otherwise) {
  return at < layer.arg_count ? layer.args[at] : otherwise;
}

bool option_text(const LayerSpec& layer, const char* key, Text* to) {
  for (uint32_t i = 0; i < layer.option_count; ++i) {
    if (!is(layer.options[i].key, key)) continue;
    *to = layer.options[i].value;
    return true;
  }
  return false;
}

uint64_t option_number(const LayerSpec& layer, const char* key, uint64_t otherwise) {
  Text text;
  int64_t n = 0;
  if (!option_text(layer, key, &text) || !base::parse_number(text, &n) || n < 0) return otherwise;
  return static_cast<uint64_t>(n);
}

double option_fraction(const LayerSpec& layer, const char* key, double otherwise) {
  Text text;
  if (!option_text(layer, key, &text)) return otherwise;
  double value = 0, unit = 1;
  bool point = false, digits = false;
  for (size_t i = 0; i < text.size; ++i) {
    const char c = text.data[i];
    if (c == '.' && !point) {
      point = true;
    } else if (c >= '0' && c <= '9') {
      digits = true;
      if (point) unit *= 10;
      value = value * 10 + (c - '0');
    } else {
      return otherwise;
    }
  }
  return digits ? value / unit : otherwise;
}

int errno_number(Text name) {
  struct Known {
    const char* name;
    int number;
  };
#define WEIR_ERRNO(x) {#x, x}
  static constexpr Known kKnown[] = {
      WEIR_ERRNO(EACCES),     WEIR_ERRNO(EAGAIN), WEIR_ERRNO(EBADF),        WEIR_ERRNO(EBUSY),
      WEIR_ERRNO(ECONNRESET), WEIR_ERRNO(EDQUOT), WEIR_ERRNO(EEXIST),       WEIR_ERRNO(EFBIG),
      WEIR_ERRNO(EINTR),      WEIR_ERRNO(EINVAL), WEIR_ERRNO(EIO),          WEIR_ERRNO(EISDIR),
      WEIR_ERRNO(ELOOP),      WEIR_ERRNO(EMFILE), WEIR_ERRNO(ENAMETOOLONG), WEIR_ERRNO(ENFILE),
      WEIR_ERRNO(ENODEV),     WEIR_ERRNO(ENOENT), WEIR_ERRNO(ENOMEM),       WEIR_ERRNO(ENOSPC),
      WEIR_ERRNO(ENOTDIR),    WEIR_ERRNO(ENXIO),  WEIR_ERRNO(EOVERFLOW),    WEIR_ERRNO(EPERM),
      WEIR_ERRNO(EROFS),      WEIR_ERRNO(ESTALE), WEIR_ERRNO(ETIMEDOUT),    WEIR_ERRNO(ETXTBSY),
  };
#undef WEIR_ERRNO
  for (const Known& known : kKnown) {
    if (is(name, known.name)) return known.number;
  }
  int64_t n = 0;
  return base::parse_number(name, &n) && n > 0 && n < 4096 ? static_cast<int>(n) : 0;
}

}  // namespace weir::rules
