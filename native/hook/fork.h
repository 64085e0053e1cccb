// SPDX-License-Identifier: Apache-2.0
// The one way through fork, whatever call makes the child: fork itself (by its handlers), _Fork,
// clone() and syscall() without shared memory. A child of a bare system call instruction is
// recognised at its first record (trace/process.h), and its layers are not notified.
#pragma once

namespace weir::hook {

// What weir has open would be the child's, too; files leave their layers.
void before_fork();
void after_fork_in_parent();
// In the child, before anything else. Makes no call that a signal handler may not make.
void in_forked_child();

// Around a call that returns in both: 0 in the child.
template <typename Real>
auto forking(Real real) {
  before_fork();
  const auto child = real();
  if (child == 0) in_forked_child();
  else after_fork_in_parent();
  return child;
}

}  // namespace weir::hook
