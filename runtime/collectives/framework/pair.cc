// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/collectives/framework/pair.h"

#include <cstring>

namespace ibcoll {
namespace {

constexpr uint64_t kLine = NodeWindow::kInlineBytes;
constexpr int kAddress = 2;  // after an entry for each rank

}  // namespace

Task send_in_pair(Comm& c, ConstBytes from, uint64_t read, int entry) {
  co_await c.next_own_step(kLine);
  uint64_t line[kAddress + 1] = {};
  line[entry] = from.size();
  line[kAddress] = reinterpret_cast<uint64_t>(from.data());
  std::memcpy(c.node().area(c.rank(), kLine), line, sizeof line);
  c.lend(from.first(read));
  c.publish();
  c.put(1 - c.rank(), from.subspan(read));
  co_await c.next_own_step(0);
  c.publish();
  co_await all_have_read(c);
}

Task receive_in_pair(Comm& c, Bytes to, uint64_t read, int entry) {
  const int sender = 1 - c.rank();
  c.announce(sender, to.subspan(read));
  co_await c.next_own_step(kLine);
  c.publish();
  co_await c.published(sender);
  uint64_t line[kAddress + 1];
  std::memcpy(line, c.node().area(sender, kLine), sizeof line);
  if (line[entry] != to.size()) {
    c.mismatch(sender, line[entry], to.size(), "bytes of its block");
    co_return;
  }
  if (read > 0 && !co_await c.read(sender, line[kAddress], to.first(read))) co_return;
  co_await c.received();
  co_await c.next_own_step(0);
  c.publish();
}

}  // namespace ibcoll
