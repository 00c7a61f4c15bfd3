/*
 * A parent of a multi-lang child that costs next to nothing itself, so that the child is what is measured.
 *
 *     parent MODE [name=value ...] -- command [argument ...]
 *
 *   whole   run the command without input; how long until it has exited
 *   start   handshake; how long until the pid message; then `lead` once, and the memory of the idle child
 *   stream  handshake, `lead` (not measured), then the chunk `repeats` times as fast as the pipe takes it
 *   turns   handshake, then `turn` is written and a sync awaited, `leads` times unmeasured and `turns` times measured
 *
 * Files: setup=, lead=, chunk=, turn= hold bytes for the child; capture= receives all that the child wrote.
 * Counts: lead_acks=, chunk_acks= are the acks that one lead or chunk must bring; repeats=, leads=, turns=;
 * ids_per_emit=1 answers each emit with task ids (for turns: elsewhere it could cut a message in two); timeout= in seconds; idle_ms= before memory is read.
 *
 * pin=1 keeps parent and child on one CPU: a conversation then costs no wake-up of another one, which on a virtual machine
 * takes longer than a turn and hides what the child does in it.
 *
 * A tuple's id is 19 characters after "id":" in a chunk; each repetition of the chunk gets ids of its own.
 * CPU time is the child's process clock (nanoseconds, all of its threads), read after the handshake and the lead and again
 * when the last expected answer is here; utime, stime and maxrss are wait4's, of the whole life of the child.
 * One JSON object is printed. Times are in nanoseconds, memory in KiB. Exit status 1: the child did not do what it should.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

typedef struct { char *data; size_t size; } Bytes;
enum { EMIT, ACK, FAIL, SYNC, LOG, ERROR, METRICS, PID, OTHER, KINDS };
static const char *KIND_NAMES[KINDS] = {"emit", "ack", "fail", "sync", "log", "error", "metrics", "pid", "other"};

static pid_t child;
static int to_child, from_child, capture_fd = -1, ids_per_emit, quiet;
static clockid_t child_clock;
static long long counts[KINDS], bytes_out, deadline;
static char *input; static size_t input_size, input_room, scanned, line_start, message_start;
static Bytes task_ids; /* not yet written answers to emits */

static void die(const char *what) {
  fprintf(stderr, "parent: %s (emit %lld, ack %lld, fail %lld, sync %lld, error %lld, errno %s)\n",
          what, counts[EMIT], counts[ACK], counts[FAIL], counts[SYNC], counts[ERROR], strerror(errno));
  if (child > 0) kill(child, SIGKILL);
  exit(1);
}

static long long now(clockid_t clock) {
  struct timespec t;
  if (clock_gettime(clock, &t)) die("clock_gettime");
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static Bytes file_bytes(const char *path) {
  Bytes b = {0};
  if (!path) return b;
  FILE *f = fopen(path, "rb");
  if (!f) die(path);
  fseek(f, 0, SEEK_END); b.size = ftell(f); rewind(f);
  b.data = malloc(b.size + 1);
  if (fread(b.data, 1, b.size, f) != b.size) die(path);
  fclose(f);
  return b;
}

static void answer_task_ids(void) {
  static const char text[] = "[2]\nend\n";
  task_ids.data = realloc(task_ids.data, task_ids.size + sizeof text);
  memcpy(task_ids.data + task_ids.size, text, sizeof text - 1);
  task_ids.size += sizeof text - 1;
}

static void count_message(const char *text, size_t size) {
  const char *at = memmem(text, size, "\"command\"", 9);
  int kind = OTHER;
  if (at) {
    const char *end = text + size;
    for (at += 9; at < end && (*at == ' ' || *at == ':'); at++) {}
    for (int k = 0; k < OTHER && at < end && *at == '"'; k++) {
      size_t n = strlen(KIND_NAMES[k]);
      if (at + 1 + n < end && !memcmp(at + 1, KIND_NAMES[k], n) && at[1 + n] == '"') { kind = k; break; }
    }
  } else if (memmem(text, size, "\"pid\"", 5)) {
    kind = PID;
  }
  counts[kind]++;
  if (kind == EMIT && ids_per_emit) answer_task_ids();
  if (!quiet && (kind == ERROR || kind == OTHER)) fprintf(stderr, "child: %.*s\n", (int)(size > 2000 ? 2000 : size), text);
}

/* Reads once; returns 0 at the end of the child's output. */
static int take_output(void) {
  if (input_room - input_size < (1 << 17)) {
    if (message_start) { /* keep only the unfinished message */
      memmove(input, input + message_start, input_size - message_start);
      input_size -= message_start; scanned -= message_start; line_start -= message_start; message_start = 0;
    }
    if (input_room - input_size < (1 << 17)) input = realloc(input, input_room = input_room * 2 + (1 << 18));
  }
  ssize_t n = read(from_child, input + input_size, 1 << 17);
  if (n < 0) { if (errno == EINTR || errno == EAGAIN) return 1; die("read"); }
  if (!n) return 0;
  if (capture_fd >= 0 && write(capture_fd, input + input_size, n) != n) die("capture");
  bytes_out += n; input_size += n;
  char *nl;
  while ((nl = memchr(input + scanned, '\n', input_size - scanned))) {
    if (nl - (input + line_start) == 3 && !memcmp(input + line_start, "end", 3)) {
      count_message(input + message_start, line_start - message_start);
      message_start = nl + 1 - input;
    }
    scanned = line_start = nl + 1 - input;
  }
  scanned = input_size;
  if (message_start == input_size) input_size = scanned = line_start = message_start = 0;
  return 1;
}

/* Writes what is given while reading what comes, until `count` of a kind are here. */
static void converse(Bytes b, int kind, long long until) {
  size_t written = 0;
  while (written < b.size || counts[kind] < until || task_ids.size) {
    struct pollfd fds[2] = {{from_child, POLLIN, 0}, {to_child, POLLOUT, 0}};
    int writing = written < b.size || task_ids.size;
    long long left = (deadline - now(CLOCK_MONOTONIC)) / 1000000;
    if (left <= 0) die("timeout");
    if (poll(fds, writing ? 2 : 1, (int)(left < 1000 ? left : 1000)) < 0 && errno != EINTR) die("poll");
    if (writing && fds[1].revents) {
      ssize_t n;
      if (task_ids.size) {
        n = write(to_child, task_ids.data, task_ids.size);
        if (n > 0) { task_ids.size -= n; memmove(task_ids.data, task_ids.data + n, task_ids.size); }
      } else {
        n = write(to_child, b.data + written, b.size - written);
        if (n > 0) written += n;
      }
      if (n < 0 && errno != EAGAIN && errno != EINTR) die("write");
    }
    if (fds[0].revents && !take_output()) die("the child closed its output early");
  }
}

static void new_ids(Bytes chunk, size_t *offsets, size_t n, long long *next) {
  for (size_t i = 0; i < n; i++) {
    char digits[24];
    /* Half of Storm's ids are negative. */
    snprintf(digits, sizeof digits, i % 2 ? "-1%017lld" : "1%018lld", (*next)++);
    memcpy(chunk.data + offsets[i], digits, 19);
  }
}

static size_t *id_offsets(Bytes chunk, size_t *n) {
  size_t *found = malloc(sizeof *found * (chunk.size / 20 + 1));
  char *at = chunk.data, *end = chunk.data + chunk.size;
  for (*n = 0; at && (at = memmem(at, end - at, "\"id\":\"", 6)); at += 19) found[(*n)++] = (at += 6) - chunk.data;
  return found;
}

static void memory_of_child(long *rss, long *pss) {
  char path[64], line[256];
  *rss = *pss = 0;
  snprintf(path, sizeof path, "/proc/%d/smaps_rollup", child);
  FILE *f = fopen(path, "r");
  if (!f) return;
  while (fgets(line, sizeof line, f)) { sscanf(line, "Rss: %ld", rss); sscanf(line, "Pss: %ld", pss); }
  fclose(f);
}

static void spawn_child(char **argv) {
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC)) die("pipe");
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, in[0], 0);
  posix_spawn_file_actions_adddup2(&files, out[1], 1);
  if ((errno = posix_spawnp(&child, argv[0], &files, NULL, argv, environ))) die(argv[0]);
  close(in[0]); close(out[1]);
  to_child = in[1]; from_child = out[0];
  fcntl(to_child, F_SETFL, O_NONBLOCK);
  if (clock_getcpuclockid(child, &child_clock)) die("clock_getcpuclockid");
}

static int by_size(const void *a, const void *b) {
  long long x = *(const long long *)a, y = *(const long long *)b;
  return (x > y) - (x < y);
}

static char **options; static int option_count;
static const char *option(const char *name) {
  size_t n = strlen(name);
  for (int i = 0; i < option_count; i++)
    if (!strncmp(options[i], name, n) && options[i][n] == '=') return options[i] + n + 1;
  return NULL;
}
static long long number(const char *name, long long otherwise) {
  const char *text = option(name);
  return text ? atoll(text) : otherwise;
}

int main(int argc, char **argv) {
  int split = 2;
  while (split < argc && strcmp(argv[split], "--")) split++;
  if (split >= argc - 1) { fprintf(stderr, "usage: parent MODE [name=value ...] -- command\n"); return 2; }
  options = argv + 2; option_count = split - 2;
  const char *mode = argv[1];
  signal(SIGPIPE, SIG_IGN);
  Bytes setup = file_bytes(option("setup")), lead = file_bytes(option("lead"));
  Bytes chunk = file_bytes(option("chunk")), turn = file_bytes(option("turn"));
  if (option("capture")) capture_fd = open(option("capture"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ids_per_emit = number("ids_per_emit", 0);
  long long begin = now(CLOCK_MONOTONIC), pid_wall = 0, pid_cpu = 0, wall = 0, cpu = 0, p50 = 0, p99 = 0, next_id = 0;
  long rss_before = 0, pss_before = 0, rss = 0, pss = 0;
  deadline = begin + number("timeout", 120) * 1000000000LL;
  if (number("pin", 0)) { /* to the CPU that we are on; the child inherits it */
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    if (sched_setaffinity(0, sizeof one, &one)) die("sched_setaffinity");
  }
  spawn_child(argv + split + 1);

  if (strcmp(mode, "whole")) {
    converse(setup, PID, 1);
    pid_wall = now(CLOCK_MONOTONIC) - begin;
    pid_cpu = now(child_clock);
    long long acks = number("lead_acks", 0);
    if (lead.size) converse(lead, ACK, acks);
    if (!strcmp(mode, "start")) {
      usleep(number("idle_ms", 200) * 1000);
      memory_of_child(&rss, &pss);
    } else if (!strcmp(mode, "stream")) {
      memory_of_child(&rss_before, &pss_before);
      long long per_chunk = number("chunk_acks", 0), repeats = number("repeats", 1);
      size_t n, *offsets = id_offsets(chunk, &n);
      long long wall0 = now(CLOCK_MONOTONIC), cpu0 = now(child_clock);
      for (long long i = 0; i < repeats; i++) {
        new_ids(chunk, offsets, n, &next_id);
        acks += per_chunk;
        converse(chunk, ACK, i == repeats - 1 ? acks : 0); /* the next chunk follows at once, without waiting */
      }
      if (counts[ACK] != acks) die("more acks than tuples");
      cpu = now(child_clock) - cpu0; wall = now(CLOCK_MONOTONIC) - wall0;
      memory_of_child(&rss, &pss);
    } else if (!strcmp(mode, "turns")) {
      long long leads = number("leads", 0), turns = number("turns", 0), *times = malloc(sizeof *times * (turns + 1));
      for (long long i = 0; i < leads; i++) converse(turn, SYNC, i + 1);
      memory_of_child(&rss_before, &pss_before);
      long long wall0 = now(CLOCK_MONOTONIC), cpu0 = now(child_clock), last = wall0;
      for (long long i = 0; i < turns; i++) {
        converse(turn, SYNC, leads + i + 1);
        long long t = now(CLOCK_MONOTONIC);
        times[i] = t - last; last = t;
      }
      cpu = now(child_clock) - cpu0; wall = now(CLOCK_MONOTONIC) - wall0;
      memory_of_child(&rss, &pss);
      if (counts[SYNC] != leads + turns) die("more syncs than turns");
      qsort(times, turns, sizeof *times, by_size);
      if (turns) { p50 = times[turns / 2]; p99 = times[turns * 99 / 100]; }
    } else {
      die("no such mode");
    }
  }
  /* What a child says about the end of its input (storm.py: an error with a traceback) is no answer to a tuple. */
  long long answers[KINDS];
  memcpy(answers, counts, sizeof answers);
  if (capture_fd >= 0) close(capture_fd);
  capture_fd = -1;
  quiet = 1;
  close(to_child);
  while (take_output()) {}
  int status;
  struct rusage use;
  if (wait4(child, &status, 0, &use) != child) die("wait4");
  child = 0;
  printf("{\"whole_wall\":%lld,\"pid_wall\":%lld,\"pid_cpu\":%lld,\"wall\":%lld,\"cpu\":%lld,\"p50\":%lld,\"p99\":%lld,",
         now(CLOCK_MONOTONIC) - begin, pid_wall, pid_cpu, wall, cpu, p50, p99);
  printf("\"utime\":%lld,\"stime\":%lld,\"maxrss\":%ld,\"rss_before\":%ld,\"rss\":%ld,\"pss\":%ld,\"status\":%d,\"bytes_out\":%lld",
         use.ru_utime.tv_sec * 1000000000LL + use.ru_utime.tv_usec * 1000LL,
         use.ru_stime.tv_sec * 1000000000LL + use.ru_stime.tv_usec * 1000LL,
         use.ru_maxrss, rss_before, rss, pss, status, bytes_out);
  for (int k = 0; k < KINDS; k++) printf(",\"%s\":%lld", KIND_NAMES[k], answers[k]);
  printf("}\n");
  return 0;
}
