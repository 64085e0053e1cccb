// SPDX-License-Identifier: Apache-2.0
// cancels CALL: a thread that makes the call on a file until it is cancelled; the next one uses the
// same file at once. survive.h comes before.
static const char* call;
static int fd;
static FILE* stream;
static _Atomic int rounds, cleaned;

static void clean(void* unused) {
  (void)unused;
  ++cleaned;
}

static void once(void) {
  char text[64] = "0123456789";
  struct iovec piece = {text, 10};
  if (strcmp(call, "write") == 0) MUST(write(fd, text, 10) == 10);
  if (strcmp(call, "pwrite") == 0) MUST(pwrite(fd, text, 10, 0) == 10);
  if (strcmp(call, "writev") == 0) MUST(writev(fd, &piece, 1) == 10);
  if (strcmp(call, "pwritev") == 0) MUST(pwritev(fd, &piece, 1, 0) == 10);
  if (strcmp(call, "read") == 0) MUST(lseek(fd, 0, SEEK_SET) == 0 && read(fd, text, 10) == 10);
  if (strcmp(call, "pread") == 0) MUST(pread(fd, text, 10, 0) == 10);
  if (strcmp(call, "readv") == 0) MUST(lseek(fd, 0, SEEK_SET) == 0 && readv(fd, &piece, 1) == 10);
  if (strcmp(call, "fsync") == 0) MUST(fsync(fd) == 0);
  if (strcmp(call, "open") == 0) {
    int state, other;
    int again = open("d.dat", O_RDWR | O_CREAT, 0644);
    MUST(again >= 0);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    MUST(close(again) == 0);
    pthread_setcancelstate(state, &other);
  }
  if (strcmp(call, "fwrite") == 0) MUST(fwrite(text, 1, 60, stream) == 60);
  if (strcmp(call, "fprintf") == 0) MUST(fprintf(stream, "%s\n", text) == 11);
  if (strcmp(call, "dprintf") == 0) MUST(dprintf(fd, "%s\n", text) == 11);
  if (strcmp(call, "fread") == 0)
    MUST(fseek(stream, 0, SEEK_SET) == 0 && fread(text, 1, 10, stream) == 10);
}

static void* work(void* unused) {
  pthread_cleanup_push(clean, NULL);
  for (;; ++rounds) once();
  pthread_cleanup_pop(1);
  return unused;
}

static void* close_it(void* unused) {
  int* const ready = unused;
  int state;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  int mine = open("b.dat", O_RDWR | O_CREAT, 0644);
  MUST(mine >= 0 && write(mine, "b", 1) == 1);
  __atomic_store_n(ready, mine, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(ready, __ATOMIC_SEQ_CST) >= 0) usleep(100);
  pthread_setcancelstate(state, &state);
  close(mine);
  MUST(0);
  return NULL;
}

int main(int count, char** arguments) {
  MUST(count == 2);
  call = arguments[1];
  fd = open_new("a.dat");
  MUST(write(fd, "0123456789", 10) == 10);
  stream = fopen("s.dat", "w+");
  MUST(stream != NULL && fputs("0123456789", stream) >= 0);
  pthread_t thread;
  void* result;
  for (int i = 0; i < 20; ++i) {
    const int before = rounds;
    const int closes = strcmp(call, "close") == 0;
    int ready = -1;
    MUST(pthread_create(&thread, NULL, closes ? close_it : work, &ready) == 0);
    while (closes ? __atomic_load_n(&ready, __ATOMIC_SEQ_CST) < 0 : rounds < before + 3)
      usleep(100);
    const int number = ready;
    MUST(pthread_cancel(thread) == 0);
    if (closes) __atomic_store_n(&ready, -1, __ATOMIC_SEQ_CST);
    MUST(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    if (closes)
      MUST(pwrite(number, "c", 1, 0) == 1 &&
           close(number) == 0);  // it was not closed, and is as before
    MUST(pwrite(fd, "0123456789", 10, 0) == 10);
    fseek(stream, 0, SEEK_SET);  // nobody has its lock
  }
  MUST(strcmp(call, "close") == 0 || cleaned == 20);
  MUST(fclose(stream) == 0 && close(fd) == 0);
  puts("joined");
  return 0;
}
