// SPDX-License-Identifier: Apache-2.0
// Every layer that this library has.
#pragma once

namespace weir::preload {

void register_kinds();

}  // namespace weir::preload
