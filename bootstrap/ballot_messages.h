// SPDX-License-Identifier: BSD-3-Clause
// The bodies of the frames of ballots (arbiter.h) between a rank and ibcoll_run.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bootstrap/arbiter.h"

namespace ibcoll::rendezvous {

// A bit for each rank.
std::string pack_ranks(const std::vector<bool>& ranks);
std::vector<bool> unpack_ranks(std::string_view packed, int size);

// `size`: ranks of the job. Unpacking: none where the bytes are not such a body.
std::string pack_vote(const Arbiter::Vote& vote, int size);
struct UnpackedVote {
  Arbiter::Key key;
  Arbiter::Call call = Arbiter::Call::kAgree;
  uint64_t flags = 0;
  std::string members;  // packed: of a thousand votes all have the same
  std::string offer;
};
std::optional<UnpackedVote> unpack_vote(std::string_view body, int size);

std::string pack_key(const Arbiter::Key& key);
std::optional<Arbiter::Key> unpack_key(std::string_view body);

std::string pack_verdict(const Arbiter::Verdict& verdict, int size);
std::optional<Arbiter::Verdict> unpack_verdict(std::string_view body, int size);

}  // namespace ibcoll::rendezvous
