// SPDX-License-Identifier: BSD-3-Clause
// UCX keeps what it has when a peer has died (Worker::abandon), and hides some of it from who looks for leaks.
extern "C" __attribute__((visibility("default"))) const char* __lsan_default_suppressions() {
  return "leak:libucs.so\nleak:libucp.so\nleak:libuct.so\n";
}
