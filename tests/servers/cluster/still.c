/* Preloaded into a server, whose wall clock then stands at the microseconds in a file; 0 lets it run. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *still;

__attribute__((constructor)) static void map(void) {
  const char *path = getenv("TOLLGATE_STILL");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *found = mmap(NULL, sizeof *still, PROT_READ, MAP_SHARED, file, 0);
  if (found != MAP_FAILED) still = found;
  close(file);
}

int clock_gettime(clockid_t id, struct timespec *now) {
  int64_t micros = still ? *still : 0;
  if (micros && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
    now->tv_sec = micros / 1000000;
    now->tv_nsec = micros % 1000000 * 1000;
    return 0;
  }
  return (int)syscall(SYS_clock_gettime, id, now);
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  (void)zone;
  struct timespec precise;
  int failed = clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return failed;
}

time_t time(time_t *result) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (result) *result = now.tv_sec;
  return now.tv_sec;
}
