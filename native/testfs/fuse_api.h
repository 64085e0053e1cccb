// SPDX-License-Identifier: Apache-2.0
// libfuse's low-level interface, in the version that all of testfs is written for.
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>
