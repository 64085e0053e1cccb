// SPDX-License-Identifier: Apache-2.0
#include "output/format/netcdf/quiet.h"

#include <cstdlib>
#include <cstring>

namespace weir::output::netcdf {

Quiet::Quiet() {
  H5Eget_auto2(H5E_DEFAULT, &before_, &data_before_);
  H5Eset_auto2(H5E_DEFAULT, failed, this);
}

Quiet::~Quiet() { H5Eset_auto2(H5E_DEFAULT, before_, data_before_); }

herr_t Quiet::failed(hid_t stack, void* self) {
  return H5Ewalk2(stack, H5E_WALK_UPWARD, note, self);
}

herr_t Quiet::note(unsigned depth, const H5E_error2_t* error, void* self) {
  Quiet& quiet = *static_cast<Quiet*>(self);
  if (!error->desc) return 0;
  if (depth == 0) quiet.innermost_ = error->desc;
  // "unable to open file: name = 'x', errno = 28, error message = 'No space left on device', flags
  // = 13"
  if (const char* number = std::strstr(error->desc, "errno = "))
    quiet.system_ = std::strerror(std::atoi(number + 8));
  return 0;
}

}  // namespace weir::output::netcdf
