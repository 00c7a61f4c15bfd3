/*
 * A native child: what the pipe and the operating system allow, as a limit to compare with.
 *
 *     child split|count|filter|spout1|spout100
 *
 * It walks each message's JSON (strings with escapes, nested values) once and copies texts without decoding them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *in, *out;
static size_t in_size, in_room, out_size, out_room;

static void put(const char *text, size_t n) {
  if (out_room - out_size < n) out = realloc(out, out_room = (out_room + n) * 2);
  memcpy(out + out_size, text, n);
  out_size += n;
}
#define PUT(literal) put(literal, sizeof(literal) - 1)

static void flush(void) {
  for (size_t done = 0; done < out_size;) {
    ssize_t n = write(1, out + done, out_size - done);
    if (n <= 0) exit(1);
    done += n;
  }
  out_size = 0;
}

static const char *space(const char *p) { while (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r') p++; return p; }

static const char *string_end(const char *p) { /* p at the opening quote; the place after the closing one */
  for (p++; *p != '"'; p++) if (*p == '\\') p++;
  return p + 1;
}

static const char *value_end(const char *p) {
  if (*p == '"') return string_end(p);
  if (*p != '{' && *p != '[') { while (!strchr(",]} \n", *p)) p++; return p; }
  int depth = 0;
  do {
    if (*p == '"') { p = string_end(p); continue; }
    if (*p == '{' || *p == '[') depth++;
    if (*p == '}' || *p == ']') depth--;
    p++;
  } while (depth);
  return p;
}

typedef struct { const char *at; size_t size; } Text;
typedef struct { Text id, values, stream, command, pid_dir; } Message;

static Message parse(const char *p) {
  Message m = {0};
  p = space(p);
  if (*p != '{') return m; /* task ids */
  for (p = space(p + 1); *p == '"'; p = space(p + (*p == ','))) {
    const char *key = p + 1;
    p = string_end(p);
    size_t n = p - 1 - key;
    p = space(space(p) + 1);
    const char *value = p;
    p = value_end(p);
    Text t = {value, p - value};
    if (n == 2 && !memcmp(key, "id", 2)) m.id = t;
    else if (n == 5 && !memcmp(key, "tuple", 5)) m.values = t;
    else if (n == 6 && !memcmp(key, "stream", 6)) m.stream = t;
    else if (n == 6 && !memcmp(key, "pidDir", 6)) m.pid_dir = t;
    else if (n == 7 && !memcmp(key, "command", 7)) m.command = t;
    p = space(p);
  }
  return m;
}

static long long serial;
static void spout_emit(void) {
  char text[96];
  int n = snprintf(text, sizeof text, "{\"command\":\"emit\",\"need_task_ids\":false,\"id\":\"%lld\",\"tuple\":[\"word\",%lld]}\nend\n", serial, serial);
  put(text, n);
  serial++;
}

static void emit(Text id, const char *values, size_t n, const char *more, size_t more_size) {
  PUT("{\"command\":\"emit\",\"need_task_ids\":false,\"anchors\":[");
  put(id.at, id.size);
  PUT("],\"tuple\":[");
  put(values, n);
  put(more, more_size);
  PUT("]}\nend\n");
}

/* The count of a word: a table of chained entries, keyed by the word's JSON text. */
typedef struct Entry { struct Entry *next; size_t size; long long count; char text[]; } Entry;
static Entry *table[4096];
static long long counted(const char *text, size_t n) {
  unsigned hash = 2166136261u;
  for (size_t i = 0; i < n; i++) hash = (hash ^ (unsigned char)text[i]) * 16777619u;
  Entry **slot = &table[hash % 4096];
  for (Entry *e = *slot; e; e = e->next) if (e->size == n && !memcmp(e->text, text, n)) return ++e->count;
  Entry *e = malloc(sizeof *e + n);
  e->next = *slot; e->size = n; e->count = 1;
  memcpy(e->text, text, n);
  *slot = e;
  return 1;
}

static void bolt(const char *work, Message m) {
  const char *value = space(m.values.at + 1), *end = value_end(value); /* the first value */
  if (!strcmp(work, "split")) {
    for (const char *p = value + 1, *stop = end - 1; p < stop;) {
      const char *space_at = memchr(p, ' ', stop - p);
      const char *word_end = space_at ? space_at : stop;
      PUT("{\"command\":\"emit\",\"need_task_ids\":false,\"anchors\":[");
      put(m.id.at, m.id.size);
      PUT("],\"tuple\":[\"");
      put(p, word_end - p);
      PUT("\"]}\nend\n");
      p = word_end + 1;
    }
  } else if (!strcmp(work, "count")) {
    char more[32];
    emit(m.id, value, end - value, more, snprintf(more, sizeof more, ",%lld", counted(value, end - value)));
  }
  PUT("{\"command\":\"ack\",\"id\":");
  put(m.id.at, m.id.size);
  PUT("}\nend\n");
}

int main(int argc, char **argv) {
  const char *work = argc > 1 ? argv[1] : "";
  int spout = !strncmp(work, "spout", 5), per_next = !strcmp(work, "spout100") ? 100 : 1, greeted = 0;
  size_t line = 0, message = 0, at = 0;
  for (;;) {
    if (in_room - in_size < 65537) {
      memmove(in, in + message, in_size - message);
      in_size -= message; line -= message; at -= message; message = 0;
      if (in_room - in_size < 65537) in = realloc(in, in_room = in_room * 2 + 262144);
    }
    ssize_t n = read(0, in + in_size, 65536);
    if (n <= 0) return 0;
    in_size += n;
    in[in_size] = 0;
    for (char *nl; (nl = memchr(in + at, '\n', in_size - at)); line = at = nl + 1 - in) {
      if (nl - (in + line) != 3 || memcmp(in + line, "end", 3)) continue;
      in[line - 1] = 0;
      Message m = parse(in + message);
      message = nl + 1 - in;
      if (!greeted) {
        char text[4200];
        snprintf(text, sizeof text, "%.*s/%d", (int)m.pid_dir.size - 2, m.pid_dir.at + 1, getpid());
        FILE *f = fopen(text, "w");
        if (f) fclose(f);
        put(text, snprintf(text, sizeof text, "{\"pid\":%d}\nend\n", getpid()));
        greeted = 1;
      } else if (spout) {
        if (m.command.size == 6) for (int i = 0; i < per_next; i++) spout_emit(); /* "next" with its quotes */
        PUT("{\"command\":\"sync\"}\nend\n");
      } else if (m.stream.size == 13 && !memcmp(m.stream.at, "\"__heartbeat\"", 13)) {
        PUT("{\"command\":\"sync\"}\nend\n");
      } else if (m.values.at) {
        bolt(work, m);
      }
    }
    at = in_size;
    flush();
  }
}
