// SPDX-License-Identifier: BSD-3-Clause
// The messages that the ranks of a job exchange while they join: one message for each step, in one allgather of the
// bootstrap. The steps are in join.cc. Steps 3 and 5 have a second allgather, of bytes: how each rank reaches the
// addresses that step 3 lists, and the network addresses whose length step 4 has.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bootstrap/bootstrap.h"
#include "runtime/base/network_modules.h"
#include "runtime/base/status.h"
#include "runtime/context/networks.h"
#include "runtime/include/ibcoll.h"
#include "runtime/machine/topology.h"
#include "runtime/transport/transport.h"

namespace ibcoll {

// How a step ended on a rank. Every message has one, so either all ranks leave with the same error, or none does.
struct Answer {
  int32_t code = IBCOLL_OK;
  char text[508] = {};  // of the error
};

// agree(): only that.
struct AgreeMessage {
  Answer answer;
};

// Step 1: the version, node and settings of each rank.
struct MeetMessage {
  static constexpr uint64_t kVersion =
      uint64_t{IBCOLL_VERSION_MAJOR} << 32 | IBCOLL_VERSION_MINOR << 16 | IBCOLL_VERSION_PATCH;
  static constexpr size_t kMostSettings = 64;

  uint64_t version = kVersion;  // the first field of every version; the others count only where it is the same
  Answer answer;
  uint64_t node = 0;     // ranks with the same share memory
  uint64_t machine = 0;  // ranks with the same share cores
  uint64_t user = 0;     // whose memory and processes this rank may use; ranks of a node have the same
  uint64_t nonce = 0;    // rank 0's is the job's
  CpuShare cpus;
  uint64_t settings[kMostSettings] = {};  // digests of those that must be the same on all ranks
};

// Step 2: which transports between nodes this rank has opened, of those that open early.
struct OpenNodeMessage {
  struct Network {
    uint8_t opened = 0;
    uint8_t expected = 0;  // there is a device for it
    char why_not[464] = {};
  };
  Answer answer;
  std::array<Network, kEarlyNetworkModules> networks;
};

// Step 3, where the job runs on several hosts and its transport needs to know which addresses join them: where this
// rank could be reached. The second allgather has how each rank reaches the others' addresses (networks.h).
struct NetworksMessage {
  Answer answer;
  HostAddresses addresses;
};

// A LinkModel, as a rank knows it.
struct LinkMessage {
  float alpha_us = 0;
  float beta_us_per_byte = 0;
  float cpu_us = 0;
  uint8_t by_ranks = 0;
  LinkModel::Beta beta = LinkModel::Beta::kKnown;
};

// Step 4: the network transport that it has opened, if the job needs one.
struct OpenNetworkMessage {
  Answer answer;
  uint32_t address_bytes = 0;
  LinkMessage link, steady_link;
};

// Step 5: this rank has the segment of its node and the addresses of all ranks.
struct ConnectMessage {
  Answer answer;
};

// Step 6: what this rank uses of its node works.
struct ProbeMessage {
  Answer answer;
};

// Step 7: the costs of its node.
struct TimeMessage {
  Answer answer;
  float copy_us_per_byte = 0;  // MemoryModel, if this rank has timed it
  float read_us = 0;
  float read_us_per_byte = 0;
  float streamed_copy_us_per_byte = 0;
  float cache_bytes = 0;
  float own_cache_bytes = 0;
  float combine_us_per_byte = 0;
};

// Step 8, where the speed of the links is not known: that of this rank's node, if this rank has timed it.
struct TimeLinkMessage {
  Answer answer;
  float us_per_byte = 0;
};

// Text that is too long ends in "...".
template <size_t kBytes>
void copy_text(std::string_view text, char (&to)[kBytes]) noexcept {
  std::memcpy(to, text.data(), std::min(text.size(), kBytes - 1));
  if (text.size() >= kBytes) std::memcpy(to + kBytes - 4, "...", 4);
}

template <size_t kBytes>
std::string_view read_text(const char (&text)[kBytes]) {
  return {text, ::strnlen(text, kBytes)};
}

inline Answer answer_of(const Status& mine) {
  Answer answer;
  answer.code = mine.code();
  copy_text(mine.text(), answer.text);
  return answer;
}

template <typename Message>
Result<std::vector<Message>> gather_messages(Bootstrap& bootstrap, const Message& mine) {
  std::vector<Message> all;
  try_twice([&] { all.resize(static_cast<size_t>(bootstrap.size())); });
  if (Status status = bootstrap.allgather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
      !status.ok())
    return status;
  return all;
}

// The error of the first rank that has one: "rank 3 could not join the job: ...". On that rank `mine`, as it is.
template <typename Message>
Status first_error(const Bootstrap& bootstrap, const Status& mine, const std::vector<Message>& all) {
  const auto failed = std::find_if(all.begin(), all.end(), [](const Message& m) { return m.answer.code != IBCOLL_OK; });
  if (failed == all.end()) return {};
  const auto rank = static_cast<int>(failed - all.begin());
  if (rank == bootstrap.rank()) return mine;
  return error(static_cast<ibcoll_status_t>(failed->answer.code), "rank {} could not join the job: {}", rank,
               read_text(failed->answer.text));
}

// Ends a step, which ended with `mine` here: the messages of all ranks, or the error of the first one that has one.
template <typename Message>
Result<std::vector<Message>> end_step(Bootstrap& bootstrap, const Status& mine, Message message) {
  message.answer = answer_of(mine);
  Result<std::vector<Message>> all = gather_messages(bootstrap, message);
  if (!all.ok()) return all;
  if (Status status = first_error(bootstrap, mine, *all); !status.ok()) return status;
  return all;
}

}  // namespace ibcoll
