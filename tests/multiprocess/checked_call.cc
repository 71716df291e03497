// SPDX-License-Identifier: BSD-3-Clause
#include "tests/multiprocess/checked_call.h"

#include <algorithm>
#include <cstring>

#include "tests/multiprocess/scenario.h"

namespace ibcoll::multiprocess {
namespace {

constexpr std::byte kGuard{0xC3}, kScribble{0x99};

uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = (a + 0x9e3779b97f4a7c15) ^ (b * 0xbf58476d1ce4e5b9);
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

bool shares_result(ibcoll_collective_t collective) {
  return collective != IBCOLL_ALLTOALL && collective != IBCOLL_ALLTOALLV;
}

}  // namespace

std::string CallParams::describe() const {
  constexpr const char* kSchemes[] = {"auto", "copy", "zero_copy"};
  return fmt::format("{} of {} bytes (root {}, gap {}{}, scheme {}, algorithm {})", ibcoll_collective_name(collective),
                     bytes, root, gap, in_place ? ", in place" : "", kSchemes[scheme], algorithm ? algorithm : "auto");
}

CheckedCall::CheckedCall(ibcoll_team_t team, const CallParams& params)
    : team_(team), params_(params), rank_(ibcoll_team_rank(team)), size_(ibcoll_team_size(team)) {
  lay_out();
}

// ---------------------------------------------------------------- layout

// What alltoallv in place sends is as long as what it receives instead.
uint64_t CheckedCall::irregular(int source, int destination) const {
  const uint64_t sizes[] = {0, params_.bytes / 2, params_.bytes, params_.bytes == 0 ? 0 : 2 * params_.bytes + 1};
  const int kind = params_.in_place ? source + destination : 7 * source + 3 * destination;
  return sizes[(kind + 1) % 4];
}

void CheckedCall::add_block(Buffer& buffer, uint64_t bytes, int source, int destination) {
  buffer.blocks.push_back({0, bytes, source, destination});
  buffer.counts.push_back(bytes);
}

// Offsets, descending with gaps for the irregular collectives, and the memory.
void CheckedCall::seal(Buffer& buffer) const {
  const bool vector = params_.collective == IBCOLL_ALLGATHERV || params_.collective == IBCOLL_ALLTOALLV;
  uint64_t end = 0;
  const size_t count = buffer.blocks.size();
  for (size_t i = 0; i < count; ++i) {
    Block& block = buffer.blocks[vector ? count - 1 - i : i];
    block.offset = end;
    end += block.bytes + (vector ? params_.gap : 0);
  }
  for (const Block& block : buffer.blocks) buffer.displacements.push_back(block.offset);
  buffer.guard_bytes = 64 - params_.salt % 4;  // not all are aligned
  buffer.memory.assign(buffer.guard_bytes + end + buffer.guard_bytes, kGuard);
}

void CheckedCall::lay_out() {
  const uint64_t bytes = params_.bytes;
  switch (params_.collective) {
    case IBCOLL_BCAST:
      add_block(recv_, bytes, params_.root, 0);
      break;
    case IBCOLL_ALLGATHER:
      add_block(send_, bytes, rank_, 0);
      for (int i = 0; i < size_; ++i) add_block(recv_, bytes, i, 0);
      break;
    case IBCOLL_ALLGATHERV:
      add_block(send_, irregular(rank_, 0), rank_, 0);
      for (int i = 0; i < size_; ++i) add_block(recv_, irregular(i, 0), i, 0);
      break;
    case IBCOLL_ALLTOALL:
    case IBCOLL_ALLTOALLV:
      for (int i = 0; i < size_; ++i) {
        const bool vector = params_.collective == IBCOLL_ALLTOALLV;
        add_block(send_, vector ? irregular(rank_, i) : bytes, rank_, i);
        add_block(recv_, vector ? irregular(i, rank_) : bytes, i, rank_);
      }
      break;
    case IBCOLL_ALLREDUCE:
      add_block(send_, bytes, rank_, 0);
      add_block(recv_, bytes, 0, 0);
      break;
    default:
      break;
  }
  seal(send_);
  seal(recv_);
}

// ---------------------------------------------------------------- contents

void CheckedCall::contribution(std::byte* to, const Block& block, uint64_t round) const {
  const uint64_t key = mix(mix(params_.salt, round),
                           static_cast<uint64_t>(block.source) << 32 | static_cast<uint32_t>(block.destination));
  for (uint64_t at = 0; at < block.bytes; at += 8) {
    const uint64_t word = mix(key, at);
    std::memcpy(to + at, &word, std::min<uint64_t>(8, block.bytes - at));
  }
}

void CheckedCall::expected_block(std::byte* to, const Block& block, uint64_t round) const {
  if (params_.collective != IBCOLL_ALLREDUCE) {
    contribution(to, block, round);
    return;
  }
  std::vector<std::byte> one(block.bytes);
  std::memset(to, 0, block.bytes);
  for (int source = 0; source < size_; ++source) {
    contribution(one.data(), {0, block.bytes, source, 0}, round);
    if (element_is_word()) {
      for (uint64_t at = 0; at < block.bytes; at += 8) {
        uint64_t sum = 0, term = 0;
        std::memcpy(&sum, to + at, 8);
        std::memcpy(&term, one.data() + at, 8);
        sum += term;
        std::memcpy(to + at, &sum, 8);
      }
    } else {
      for (uint64_t at = 0; at < block.bytes; ++at)
        to[at] = static_cast<std::byte>(std::to_integer<unsigned>(to[at]) + std::to_integer<unsigned>(one[at]));
    }
  }
}

// The whole memory of a buffer: guards, and in the blocks what this rank gives, or what it gets.
std::vector<std::byte> CheckedCall::expected(const Buffer& buffer, uint64_t round, bool result) const {
  std::vector<std::byte> image(buffer.memory.size(), kGuard);
  for (const Block& block : buffer.blocks) {
    std::byte* const to = image.data() + buffer.guard_bytes + block.offset;
    if (result)
      expected_block(to, block, round);
    else
      contribution(to, block, round);
  }
  return image;
}

void CheckedCall::fill(uint64_t round) {
  // Persistent requests hold the addresses: the memory stays where it is.
  const std::vector<std::byte> sent = expected(send_, round, false);
  std::copy(sent.begin(), sent.end(), send_.memory.begin());
  std::fill(recv_.memory.begin(), recv_.memory.end(), kGuard);
  for (Block block : recv_.blocks) {
    std::byte* const to = recv_.start() + block.offset;
    const bool own = params_.in_place ? !shares_result(params_.collective) || block.source == rank_ ||
                                            params_.collective == IBCOLL_ALLREDUCE
                                      : params_.collective == IBCOLL_BCAST && params_.root == rank_;
    if (params_.in_place) {  // block i of alltoall(v) goes to rank i
      block.destination = shares_result(params_.collective) ? 0 : block.source;
      block.source = rank_;
    }
    if (own)
      contribution(to, block, round);
    else
      std::memset(to, 0x5A, block.bytes);
  }
}

bool CheckedCall::same(const char* name, const Buffer& buffer, const std::vector<std::byte>& wanted,
                       const std::vector<std::byte>& found) const {
  const auto [w, f] = std::mismatch(wanted.begin(), wanted.end(), found.begin());
  if (w == wanted.end()) return true;
  return expect(false, "team rank {}: {}: byte {} of the {} buffer is {:#x}, not {:#x}", rank_, params_.describe(),
                w - wanted.begin() - static_cast<ptrdiff_t>(buffer.guard_bytes), name, std::to_integer<int>(*f),
                std::to_integer<int>(*w));
}

bool CheckedCall::verify(uint64_t round) const {
  const bool received = same("receive", recv_, expected(recv_, round, true), recv_.memory);
  return same("send", send_, expected(send_, round, false), send_.memory) && received;
}

bool CheckedCall::guards(const char* name, const Buffer& buffer) const {
  std::vector<std::byte> found = buffer.memory;
  for (const Block& block : buffer.blocks)
    std::fill_n(found.begin() + static_cast<ptrdiff_t>(buffer.guard_bytes + block.offset), block.bytes, kGuard);
  return same(name, buffer, std::vector<std::byte>(found.size(), kGuard), found);
}

bool CheckedCall::verify_guards() const {
  const bool received = guards("receive", recv_);
  return guards("send", send_) && received;
}

void CheckedCall::scribble() {
  for (Buffer* const buffer : {&send_, &recv_}) std::fill(buffer->memory.begin(), buffer->memory.end(), kScribble);
}

bool CheckedCall::scribbled() const {
  const auto untouched = [](std::byte b) { return b == kScribble; };
  return std::all_of(send_.memory.begin(), send_.memory.end(), untouched) &&
         std::all_of(recv_.memory.begin(), recv_.memory.end(), untouched);
}

// ---------------------------------------------------------------- the call

ibcoll_collective_args_t CheckedCall::args() const {
  const bool vector = params_.collective == IBCOLL_ALLGATHERV || params_.collective == IBCOLL_ALLTOALLV;
  ibcoll_collective_args_t args{};
  args.struct_size = sizeof args;
  args.collective = params_.collective;
  args.scheme = params_.scheme;
  args.algorithm = params_.algorithm;
  if (params_.collective == IBCOLL_BARRIER) return args;
  args.send = params_.collective == IBCOLL_BCAST ? nullptr : params_.in_place ? IBCOLL_IN_PLACE : send_.start();
  args.recv = const_cast<std::byte*>(recv_.start());
  args.root = params_.root;
  if (vector) {
    args.recv_counts = recv_.counts.data();
    args.recv_displacements = recv_.displacements.data();
    if (params_.collective == IBCOLL_ALLTOALLV && !params_.in_place) {
      args.send_counts = send_.counts.data();
      args.send_displacements = send_.displacements.data();
    }
  } else if (params_.collective == IBCOLL_ALLREDUCE) {
    args.count = element_is_word() ? params_.bytes / 8 : params_.bytes;
    args.type = element_is_word() ? IBCOLL_UINT64 : IBCOLL_UINT8;
    args.op = IBCOLL_SUM;
  } else {
    args.bytes = params_.bytes;
  }
  return args;
}

ibcoll_status_t CheckedCall::call() const {
  const ibcoll_collective_args_t a = args();
  switch (params_.collective) {
    case IBCOLL_BCAST:
      return ibcoll_bcast(team_, a.recv, a.bytes, a.root);
    case IBCOLL_ALLGATHER:
      return ibcoll_allgather(team_, a.send, a.recv, a.bytes);
    case IBCOLL_ALLGATHERV:
      return ibcoll_allgatherv(team_, a.send, a.recv, a.recv_counts, a.recv_displacements);
    case IBCOLL_ALLTOALL:
      return ibcoll_alltoall(team_, a.send, a.recv, a.bytes);
    case IBCOLL_ALLTOALLV:
      return ibcoll_alltoallv(team_, a.send, a.send_counts, a.send_displacements, a.recv, a.recv_counts,
                              a.recv_displacements);
    case IBCOLL_ALLREDUCE:
      return ibcoll_allreduce(team_, a.send, a.recv, a.count, a.type, a.op);
    default:
      return ibcoll_barrier(team_);
  }
}

bool CheckedCall::run(uint64_t round) {
  fill(round);
  return expect_ok(call(), params_.describe()) && verify(round);
}

std::vector<CallParams> every_collective(uint64_t bytes, int team_size) {
  std::vector<CallParams> calls;
  for (int i = 0; i < kFirstCollectives; ++i) {
    CallParams params;
    params.collective = static_cast<ibcoll_collective_t>(i);
    params.bytes = params.collective == IBCOLL_BARRIER ? 0 : bytes;
    params.root = params.collective == IBCOLL_BCAST ? team_size / 2 : 0;
    params.gap = 13;
    params.salt = static_cast<uint64_t>(i);
    calls.push_back(params);
  }
  return calls;
}

}  // namespace ibcoll::multiprocess
