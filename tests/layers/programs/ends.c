// SPDX-License-Identifier: Apache-2.0
// Accepts bytes and ends in the way that the argument names; each way leaves them in the file.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int file;
static void late(void) {
  if (write(file, "late", 4) != 4) _exit(8);
}

int main(int count, char **arguments) {
  const char *how = count > 1 ? arguments[1] : "";
  file = open("end.dat", O_WRONLY | O_CREAT | O_TRUNC, 0644);
  for (int i = 0; i < 10; ++i) {
    char line[32];
    const int n = snprintf(line, sizeof line, "record %d\n", i);
    if (write(file, line, n) != n) return 7;
  }
  if (strcmp(how, "_exit") == 0) _exit(0);
  if (strcmp(how, "quick_exit") == 0) quick_exit(0);
  if (strcmp(how, "exec") == 0) execl("/bin/sh", "sh", "-c", "exit 0", (char *)NULL);
  if (strcmp(how, "close") == 0) return close(file);
  if (strcmp(how, "abort") == 0) abort();
  if (strcmp(how, "kill") == 0) raise(SIGKILL);
  if (strcmp(how, "atexit") == 0) return atexit(late);
  return 0;
}
