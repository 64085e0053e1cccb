// SPDX-License-Identifier: Apache-2.0
// weir-forward DIRECTORY BLOCK_BYTES-SLOTS-FORWARDERS-NUMBER
// A forwarding process of a node's directory for the cache of that shape; started by ranks under
// rules with layer forward, and there as long as one of them is.
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>

#include "layers/forward/daemon/forwarder.h"
#include "layers/machinery/node/place.h"
#include "layers/machinery/node/registry.h"

namespace {

void settle_process() {
  for (int number = 1; number < 65; ++number) signal(number, SIG_IGN);
  signal(SIGTERM, SIG_DFL);
  signal(SIGCHLD, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const auto which : {RLIMIT_NOFILE, RLIMIT_FSIZE}) {
    rlimit limit{};
    if (getrlimit(which, &limit) != 0) continue;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(which, &limit);
  }
}

bool read_name(const char* text, weir::forward::Name* to) {
  char end = 0;
  const int n = sscanf(text, "%u-%u-%u-%u%c", &to->shape.block_bytes, &to->shape.slots,
                       &to->shape.forwarders, &to->number, &end);
  to->text = text;
  return n == 4 && to->shape.forwarders <= weir::cache::kMostForwarders &&
         to->number < to->shape.forwarders;
}

}  // namespace

int main(int count, char** arguments) {
  weir::forward::Name name;
  if (count != 3 || !read_name(arguments[2], &name)) {
    fprintf(stderr, "usage: weir-forward DIRECTORY BLOCK_BYTES-SLOTS-FORWARDERS-NUMBER\n");
    return 2;
  }
  settle_process();
  weir::node::use_directory(arguments[1]);
  weir::node::look_on();
  static weir::cache::Cache cache;
  if (!weir::cache::look_at(name.shape, &cache)) return 1;
  weir::forward::Forwarder forwarder(cache, name);
  if (!forwarder.begin()) return 0;
  forwarder.serve();
  return 0;
}
