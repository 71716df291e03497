/* SPDX-License-Identifier: BSD-3-Clause
 * late_program [PLUGIN WHEN]...: loads plugins that use ibcoll, one after the other, and returns from main(). It knows
 * nothing of ibcoll. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; i += 2) {
    void* plugin = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
    void (*begin)(const char*) = plugin != NULL ? (void (*)(const char*))dlsym(plugin, "late_begin") : NULL;
    if (begin == NULL) return fprintf(stderr, "%s\n", dlerror()), 2;
    begin(argv[i + 1]);
  }
  return 0;
}
