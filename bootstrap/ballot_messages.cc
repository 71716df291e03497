// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/ballot_messages.h"

#include <cstdint>
#include <cstring>

namespace ibcoll::rendezvous {
namespace {

struct WireKey {
  uint64_t epoch;
  uint64_t round;
};
// Followed by a bit for each rank of the job, and the offer.
struct WireVote {
  WireKey key;
  uint64_t flags;
  uint64_t call;
};
// Followed by a bit for each rank of the job, and the offers; or by the text of an error.
struct WireVerdict {
  WireKey key;
  uint64_t number;
  uint64_t flags;
  int64_t status;
};

template <typename T>
std::string bytes_of(const T& fields) {
  return {reinterpret_cast<const char*>(&fields), sizeof fields};
}

template <typename T>
bool take(std::string_view& body, T& fields) {
  if (body.size() < sizeof fields) return false;
  std::memcpy(&fields, body.data(), sizeof fields);
  body.remove_prefix(sizeof fields);
  return true;
}

bool take_ranks(std::string_view& body, int size, std::string& packed) {
  const size_t bytes = (static_cast<size_t>(size) + 7) / 8;
  if (body.size() < bytes) return false;
  packed = body.substr(0, bytes);
  body.remove_prefix(bytes);
  return true;
}

WireKey wire(const Arbiter::Key& key) { return {key.epoch, key.round}; }
Arbiter::Key key_of(const WireKey& key) { return {key.epoch, static_cast<uint32_t>(key.round)}; }

}  // namespace

std::string pack_ranks(const std::vector<bool>& ranks) {
  std::string bits((ranks.size() + 7) / 8, '\0');
  for (size_t i = 0; i < ranks.size(); ++i)
    if (ranks[i]) bits[i / 8] = static_cast<char>(bits[i / 8] | 1 << i % 8);
  return bits;
}

std::vector<bool> unpack_ranks(std::string_view packed, int size) {
  std::vector<bool> ranks(static_cast<size_t>(size));
  for (size_t i = 0; i < ranks.size(); ++i) ranks[i] = (static_cast<unsigned char>(packed[i / 8]) >> i % 8 & 1) != 0;
  return ranks;
}

std::string pack_vote(const Arbiter::Vote& vote, int size) {
  std::vector<bool> members(static_cast<size_t>(size));
  for (const int rank : vote.members) members[static_cast<size_t>(rank)] = true;
  return bytes_of(WireVote{wire(vote.key), vote.flags, static_cast<uint64_t>(vote.call)}) + pack_ranks(members) +
         vote.offer;
}

std::optional<UnpackedVote> unpack_vote(std::string_view body, int size) {
  WireVote fields;
  UnpackedVote vote;
  if (!take(body, fields) || !take_ranks(body, size, vote.members)) return std::nullopt;
  vote.key = key_of(fields.key);
  vote.call = static_cast<Arbiter::Call>(fields.call);
  vote.flags = fields.flags;
  vote.offer = body;
  return vote;
}

std::string pack_key(const Arbiter::Key& key) { return bytes_of(wire(key)); }

std::optional<Arbiter::Key> unpack_key(std::string_view body) {
  WireKey key;
  if (!take(body, key)) return std::nullopt;
  return key_of(key);
}

std::string pack_verdict(const Arbiter::Verdict& verdict, int size) {
  std::string body = bytes_of(WireVerdict{wire(verdict.key), verdict.number, verdict.flags, verdict.status.code()});
  if (!verdict.status.ok()) return body + verdict.status.text();
  std::vector<bool> dead = verdict.dead;
  dead.resize(static_cast<size_t>(size));
  return body + pack_ranks(dead) + verdict.offers;
}

std::optional<Arbiter::Verdict> unpack_verdict(std::string_view body, int size) {
  WireVerdict fields;
  if (!take(body, fields)) return std::nullopt;
  Arbiter::Verdict verdict;
  verdict.key = key_of(fields.key);
  verdict.number = fields.number;
  verdict.flags = fields.flags;
  if (fields.status != IBCOLL_OK) {
    verdict.status = Status(static_cast<ibcoll_status_t>(fields.status), std::string(body));
    return verdict;
  }
  std::string dead;
  if (!take_ranks(body, size, dead)) return std::nullopt;
  verdict.dead = unpack_ranks(dead, size);
  verdict.offers = body;
  return verdict;
}

}  // namespace ibcoll::rendezvous
