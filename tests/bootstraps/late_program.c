/* SPDX-License-Identifier: BSD-3-Clause
 * late_program [PLUGIN WHEN]...: loads plugins that use ibcoll, one after the other, and returns from main(). It knows
 * nothing of ibcoll. Its ucp_worker_progress stands before UCX's: a thread that is told to stays in there. */
#include "tests/bootstraps/late_program.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

atomic_int late_inside, late_over;

unsigned ucp_worker_progress(void* worker) {
  static _Atomic(unsigned (*)(void*)) ucx;
  int next = LATE_HOLD_NEXT;
  if (ucx == NULL)
    ucx = (unsigned (*)(void*))dlsym(dlopen("libucp.so.0", RTLD_NOW | RTLD_NOLOAD), "ucp_worker_progress");
  if (atomic_compare_exchange_strong(&late_inside, &next, LATE_HELD)) usleep(100000);
  if (late_over) {
    static const char text[] = "late: inside of UCX after its end\n";
    _exit(write(STDERR_FILENO, text, strlen(text)) < 0 ? 4 : 5);
  }
  return ucx(worker);
}

int main(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; i += 2) {
    void* plugin = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
    void (*begin)(const char*) = plugin != NULL ? (void (*)(const char*))dlsym(plugin, "late_begin") : NULL;
    if (begin == NULL) return fprintf(stderr, "%s\n", dlerror()), 2;
    begin(argv[i + 1]);
  }
  return 0;
}
