// SPDX-License-Identifier: Apache-2.0
// player SCRIPT: the operations of a script in turn; fork, exec and threads; several processes that
// take turns.
//   fork N HOW     the next N operations are those of a forked child, which ends by exit (0) or
//   _exit (1); the parent waits exec N         the same, of a program that the child is replaced
//   by; descriptors without CLOEXEC are its own spawn N        the same, by posix_spawn par T N the
//   next N operations belong to T threads that run at once; each begins with its thread's number
//   @P OPERATION   of process P; all P but 0 are started at the beginning, and wait for their turn
//   end HOW        how the process ends: 0 return, 1 _exit, 2 quick_exit, 3 SIGKILL
#include "player.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int fds[kSlots];
FILE* streams[kStreams];
struct mapping maps[kMaps];
static struct report whole;
__thread struct report* out = &whole;
static char **lines, *self, *script;
static int line_count;
static int processes = 1, to_process[8], from_process[8];

static void make_room(size_t more) {
  if (out->size + more > out->room)
    out->text = realloc(out->text, out->room = 2 * out->room + more + 65536);
}

static void append(const char* text, size_t size) {
  make_room(size);
  if (size > 0) memcpy(out->text + out->size, text, size);
  out->size += size;
}

void say(const char* format, ...) {
  va_list more;
  make_room(4096);
  va_start(more, format);
  out->size += (size_t)vsnprintf(out->text + out->size, out->room - out->size, format, more);
  va_end(more);
}

static void flush_report(void) {
  for (size_t at = 0; at < whole.size;) {
    const ssize_t n = write(1, whole.text + at, whole.size - at);
    if (n <= 0) _exit(98);
    at += (size_t)n;
  }
  whole.size = 0;
}

void result(long value, int failed) {
  const int number = errno;
  if (failed) say(" %ld %s", value, strerrorname_np(number));
  else say(" %ld", value);
}

void result_of(long value, int failed, const void* bytes, long size) {
  result(value, failed);
  uint32_t sum = 2166136261u;
  for (long i = 0; i < size; ++i) sum = (sum ^ ((const unsigned char*)bytes)[i]) * 16777619u;
  if (size > 0) say(" #%08x", sum);
}

char* room(size_t size) {
  static __thread char* at;
  static __thread size_t have;
  if (size > have) {
    free(at);
    at = aligned_alloc(4096, have = (size + 8191) & -4096ul);
  }
  return at;
}

char* bytes_of(const struct op* op, size_t size) {
  char* to = room(size);
  uint32_t x = op->line * 2654435761u + 12345;
  for (size_t i = 0; i < size; ++i) {
    x = x * 1664525u + 1013904223u;
    to[i] = (char)(' ' + (x >> 24) % 95);
  }
  for (size_t i = 61; i < size; i += 67) to[i] = '\n';
  return to;
}

static int parse(char* text, unsigned number, struct op* op) {
  char* save;
  memset(op, 0, sizeof *op);
  op->line = number;
  op->name = strtok_r(text, " \n", &save);
  if (op->name == NULL || op->name[0] == '#') return 0;
  for (char* word; op->count < kArguments && (word = strtok_r(NULL, " \n", &save)) != NULL;
       ++op->count) {
    op->words[op->count] = word;
    op->n[op->count] = strtol(word, NULL, 0);
  }
  return 1;
}

static const struct entry* find(const char* name) {
  for (const struct entry* e = posix_actions; e->name != NULL; ++e)
    if (strcmp(e->name, name) == 0) return e;
  for (const struct entry* e = stdio_actions; e->name != NULL; ++e)
    if (strcmp(e->name, name) == 0) return e;
  return NULL;
}

static void act(const struct op* op) {
  const struct entry* e = find(op->name);
  if (e == NULL || op->count < e->words) {
    fprintf(stderr, "line %u: no operation %s of %d words\n", op->line, op->name, op->count);
    _exit(97);
  }
  say("%u %s", op->line, op->name);
  errno = 0;
  e->run(op);
  say("\n");
}

static void play(int from, int to);

static void wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  say("  status %d\n", status);
}

static void in_child(int from, int to, long how) {
  flush_report();
  const pid_t child = fork();
  if (child != 0) return wait_for(child);
  processes = 1;
  play(from, to);
  flush_report();
  if (how == 1) _exit(0);
  exit(0);
}

// The other program finds the descriptors by their numbers, in its arguments.
static void in_program(int from, int to, int spawns) {
  char first[16], last[16], numbers[kSlots][16];
  char* arguments[kSlots + 6] = {self, "--go-on", script, first, last};
  snprintf(first, sizeof first, "%d", from);
  snprintf(last, sizeof last, "%d", to);
  for (int i = 0; i < kSlots; ++i) {
    const int inherited = fds[i] >= 0 && (fcntl(fds[i], F_GETFD) & FD_CLOEXEC) == 0;
    snprintf(numbers[i], sizeof numbers[i], "%d", inherited ? fds[i] : -1);
    arguments[5 + i] = numbers[i];
  }
  extern char** environ;
  flush_report();
  pid_t child;
  if (spawns) {
    if (posix_spawn(&child, self, NULL, NULL, arguments, environ) != 0) _exit(96);
  } else {
    child = fork();
    if (child == 0) {
      execv(self, arguments);
      _exit(96);
    }
  }
  wait_for(child);
}

struct part {
  pthread_t thread;
  struct report report;
  int number, from, to;
};

static void* play_part(void* argument) {
  struct part* part = argument;
  out = &part->report;
  for (int i = part->from; i < part->to; ++i) {
    char text[512];
    struct op op;
    snprintf(text, sizeof text, "%s", lines[i]);
    if (atoi(text) == part->number && parse(strchr(text, ' ') + 1, (unsigned)i, &op)) act(&op);
  }
  free(room(0));
  return NULL;
}

static void in_threads(int threads, int from, int to) {
  struct part parts[8];
  memset(parts, 0, sizeof parts);
  if (threads > 8) threads = 8;
  for (int i = 0; i < threads; ++i) {
    parts[i].number = i, parts[i].from = from, parts[i].to = to;
    if (pthread_create(&parts[i].thread, NULL, play_part, &parts[i]) != 0) _exit(95);
  }
  for (int i = 0; i < threads; ++i) {
    pthread_join(parts[i].thread, NULL);
    append(parts[i].report.text, parts[i].report.size);
    free(parts[i].report.text);
  }
}

// The other processes come to their ends first.
static void end(long how) {
  flush_report();
  for (int p = 1; p < processes; ++p) close(to_process[p]);
  while (wait(NULL) > 0) {}
  if (how == 1) _exit(0);
  if (how == 2) quick_exit(0);
  if (how == 3) kill(getpid(), SIGKILL);
  exit(0);
}

// Another process plays the line, and says when it is done.
static void hand_over(int process, int line) {
  flush_report();
  char done;
  if (process >= processes || write(to_process[process], &line, sizeof line) != sizeof line)
    _exit(94);
  if (read(from_process[process], &done, 1) != 1) say("  process %d is gone\n", process);
}

static void play(int from, int to) {
  for (int i = from; i < to && i < line_count; ++i) {
    char text[512];
    struct op op;
    snprintf(text, sizeof text, "%s", lines[i]);
    if (text[0] == '@' && text[1] != '0') {
      hand_over(atoi(text + 1), i);
      continue;
    }
    if (!parse(text[0] == '@' ? strchr(text, ' ') + 1 : text, (unsigned)i, &op)) continue;
    const int rest =
        op.count > 0 ? i + (int)op.n[op.count > 1 && strcmp(op.name, "par") == 0 ? 1 : 0] : i;
    if (strcmp(op.name, "fork") == 0) in_child(i + 1, rest + 1, op.n[1]), i = rest;
    else if (strcmp(op.name, "exec") == 0) in_program(i + 1, rest + 1, 0), i = rest;
    else if (strcmp(op.name, "spawn") == 0) in_program(i + 1, rest + 1, 1), i = rest;
    else if (strcmp(op.name, "par") == 0) in_threads((int)op.n[0], i + 1, rest + 1), i = rest;
    else if (strcmp(op.name, "end") == 0) end(op.n[0]);
    else act(&op);
  }
}

static void take_turns(int orders, int answers) {
  int line;
  while (read(orders, &line, sizeof line) == sizeof line) {
    char text[512];
    struct op op;
    snprintf(text, sizeof text, "%s", strchr(lines[line], ' ') + 1);
    if (parse(text, (unsigned)line, &op)) {
      if (strcmp(op.name, "end") == 0) end(op.n[0]);
      act(&op);
    }
    flush_report();
    if (write(answers, "", 1) != 1) _exit(93);
  }
}

// Descriptors of the pipes get high numbers: those of the script's files are then the same in every
// run.
static int out_of_the_way(int fd) {
  const int high = fcntl(fd, F_DUPFD_CLOEXEC, 200);
  close(fd);
  return high;
}

static void start_processes(void) {
  for (int i = 0; i < line_count; ++i) {
    if (lines[i][0] == '@' && atoi(lines[i] + 1) >= processes && atoi(lines[i] + 1) < 8)
      processes = atoi(lines[i] + 1) + 1;
  }
  for (int p = 1; p < processes; ++p) {
    int orders[2], answers[2];
    if (pipe(orders) != 0 || pipe(answers) != 0) _exit(92);
    for (int i = 0; i < 2; ++i)
      orders[i] = out_of_the_way(orders[i]), answers[i] = out_of_the_way(answers[i]);
    if (fork() == 0) {
      fcntl(orders[0], F_SETFD, 0), fcntl(answers[1], F_SETFD, 0);
      char from[16], to[16];
      snprintf(from, sizeof from, "%d", orders[0]), snprintf(to, sizeof to, "%d", answers[1]);
      execl(self, self, "--turns", script, from, to, (char*)NULL);
      _exit(96);
    }
    close(orders[0]), close(answers[1]);
    to_process[p] = orders[1], from_process[p] = answers[0];
  }
}

static void read_script(void) {
  const int fd = open(script, O_RDONLY);
  const off_t size = lseek(fd, 0, SEEK_END);
  char* text = malloc((size_t)size + 1);
  if (fd < 0 || pread(fd, text, (size_t)size, 0) != size) _exit(91);
  close(fd);
  text[size] = 0;
  for (char* at = text; at != NULL && *at != 0;) {
    if (line_count % 1024 == 0) lines = realloc(lines, (size_t)(line_count + 1024) * sizeof *lines);
    lines[line_count++] = at;
    at = strchr(at, '\n');
    if (at != NULL) *at++ = 0;
  }
}

int main(int count, char** arguments) {
  static char own[4096];
  const ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
  self = length > 0 ? own : arguments[0];
  for (int i = 0; i < kSlots; ++i) fds[i] = -1;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (count < 2) return 90;
  script = arguments[count == 2 ? 1 : 2];
  read_script();
  if (count == 2) {
    start_processes();
    play(0, line_count);
    end(0);
  } else if (strcmp(arguments[1], "--turns") == 0) {
    take_turns(atoi(arguments[3]), atoi(arguments[4]));
  } else {
    for (int i = 0; i < kSlots && 5 + i < count; ++i) fds[i] = atoi(arguments[5 + i]);
    play(atoi(arguments[3]), atoi(arguments[4]));
  }
  flush_report();
  return 0;
}
