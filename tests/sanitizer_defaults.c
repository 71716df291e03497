// SPDX-License-Identifier: BSD-3-Clause
// Options of AddressSanitizer and LeakSanitizer, in every program that is built with them. ASAN_OPTIONS and
// LSAN_OPTIONS come after them.
const char* __asan_default_options(void);
const char* __lsan_default_suppressions(void);

// With intercept_tls_get_addr, LeakSanitizer guesses where the thread-local variables of loaded modules lie. It takes a
// block that begins 16 bytes after a page for one of an old C library, and the header of its own allocator before it
// for address and size. It then scans that "address" and crashes ("Tracer caught signal 11"): now and then for the main
// thread, always for a new thread with a small block, as UCX has one. No leak is lost without it: the dynamic linker
// allocates these blocks, and LeakSanitizer scans what the dynamic linker has allocated.
__attribute__((visibility("default"))) const char* __asan_default_options(void) { return "intercept_tls_get_addr=0"; }

// UCX keeps what it has when a peer has died (Worker::abandon), and hides some of it from LeakSanitizer.
__attribute__((visibility("default"))) const char* __lsan_default_suppressions(void) {
  return "leak:libucs.so\nleak:libucp.so\nleak:libuct.so\n";
}
