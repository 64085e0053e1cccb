// SPDX-License-Identifier: Apache-2.0
// Two threads that say in a shared page how many calls they have begun, until somebody kills them.
static volatile uint64_t* begun;

static void* work(void* argument) {
  long me = (long)argument;
  char name[8] = {'t', (char)('0' + me), 0}, other[8] = {'s', (char)('0' + me), 0};
  for (uint64_t n = 0;; n += 3) {
    begun[me * 8] = n + 1;
    int fd = open(n % 2 ? name : other, O_RDWR | O_CREAT, 0644);
    begun[me * 8] = n + 2;
    if (pwrite(fd, "x", 1, 0) != 1) break;
    begun[me * 8] = n + 3;
    close(fd);
  }
  return NULL;
}

int main(void) {
  int fd = open("begun", O_RDWR);
  begun = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  MUST(begun != MAP_FAILED);
  pthread_t one;
  pthread_create(&one, NULL, work, (void*)1L);
  work(NULL);
  return 1;
}
