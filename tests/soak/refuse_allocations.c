// SPDX-License-Identifier: Apache-2.0
// Preloaded into a daemon, makes the C library refuse large allocations on demand. The file named by
// LONGHAUL_REFUSE_ALLOCATIONS holds two 64-bit counters in host order: how many to refuse, and how many were refused.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

// Smaller requests would mostly hit the allocator's own bookkeeping and the C++ runtime.
static const size_t kLarge = 16 * 1024;

struct Counters {
  _Atomic long long to_refuse;
  _Atomic long long refused;
};

static struct Counters* counters;

__attribute__((constructor)) static void open_counters(void) {
  const char* path = getenv("LONGHAUL_REFUSE_ALLOCATIONS");
  int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (file < 0) return;
  void* mapped = mmap(NULL, sizeof *counters, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (mapped != MAP_FAILED) counters = mapped;
}

static int refuses(size_t size) {
  if (!counters || size < kLarge || atomic_load(&counters->to_refuse) <= 0) return 0;
  if (atomic_fetch_sub(&counters->to_refuse, 1) <= 0) return 0;
  atomic_fetch_add(&counters->refused, 1);
  errno = ENOMEM;
  return 1;
}

void* malloc(size_t size) {
  static void* (*next)(size_t);
  if (!next) next = dlsym(RTLD_NEXT, "malloc");
  return refuses(size) ? NULL : next(size);
}

void* aligned_alloc(size_t alignment, size_t size) {
  static void* (*next)(size_t, size_t);
  if (!next) next = dlsym(RTLD_NEXT, "aligned_alloc");
  return refuses(size) ? NULL : next(alignment, size);
}
