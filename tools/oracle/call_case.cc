// SPDX-License-Identifier: BSD-3-Clause
#include "tools/oracle/call_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "runtime/base/hash.h"
#include "tools/oracle/elements.h"

namespace ibcoll::oracle {
namespace {

constexpr uint64_t kGuard = 64;  // bytes before and after each buffer, at least
constexpr std::byte kScribble{0x5c};

uint64_t key_of(uint64_t seed, int source, int destination, uint64_t round) {
  return Digest()
      .add(seed)
      .add(round)
      .add(static_cast<uint64_t>(source))
      .add(static_cast<uint64_t>(destination))
      .value();
}

void fill_pattern(std::byte* to, uint64_t bytes, uint64_t key) {
  for (uint64_t i = 0; i < bytes; ++i) to[i] = static_cast<std::byte>((key + i * kGoldenRatio) >> 56);
}

// An address that nobody may look at.
template <typename T>
T* junk() {
  return reinterpret_cast<T*>(uintptr_t{4096 - 8});
}

}  // namespace

uint64_t CallParams::element_bytes() const {
  return type == IBCOLL_OPAQUE ? opaque_bytes : oracle::element_bytes(type);
}

uint64_t CallParams::block_bytes(int source, int destination) const {
  switch (row().sizes) {
    case SizesKnown::kRegular:
      return row().reduces() ? count * element_bytes() : bytes;
    case SizesKnown::kToPairs:
      return counts[static_cast<size_t>(source) * static_cast<size_t>(p) + static_cast<size_t>(destination)];
    case SizesKnown::kToAll:
    case SizesKnown::kToRoot:
      break;
  }
  return counts[static_cast<size_t>(row().recv.extent == Extent::kBlocks ? source : destination)];
}

std::string CallParams::describe() const {
  const uint64_t total = std::accumulate(counts.begin(), counts.end(), uint64_t{0});
  return fmt::format("{} p={} bytes={} total={} count={} type={} op={} root={}{} scheme={}{}{}", row().name, p, bytes,
                     total, count, static_cast<int>(type), operation_name(op), root, in_place ? " in place" : "",
                     static_cast<int>(scheme), algorithm ? " algorithm=" : "", algorithm ? algorithm : "");
}

CallCase::CallCase(CallParams params, int rank) : params_(std::move(params)), rank_(rank) {
  const Collective& row = params_.row();
  if (!row.one_buffer && !(in_place() && !result_in_operand() && row.recv.extent == Extent::kBlocks) &&
      !(in_place() && row.reduces()))
    lay_out(send_, row.send, true);
  const bool stays = in_place() && row.rooted && row.send.extent == Extent::kBlocks;  // scatter: nothing is received
  if (!stays)
    lay_out(recv_, in_place() && result_in_operand() ? row.send : row.recv, in_place() && result_in_operand());
}

// reduce_scatter in place: the receive buffer holds all blocks of the operand.
bool CallCase::result_in_operand() const {
  return params_.row().reduces() && params_.row().send.extent == Extent::kBlocks;
}

void CallCase::lay_out(Memory& memory, const Buffer& buffer, bool sends) {
  memory.significant = buffer.extent != Extent::kNothing && (!buffer.at_root_only || rank_ == params_.root);
  if (!memory.significant) return;
  const int blocks = buffer.extent == Extent::kBlocks ? params_.p : 1;
  for (int i = 0; i < blocks; ++i) {
    const int index = buffer.extent == Extent::kBlocks ? i : rank_;
    const uint64_t bytes = sends ? params_.block_bytes(rank_, index) : params_.block_bytes(index, rank_);
    memory.blocks.push_back({0, bytes, index});
  }
  place(memory, sends ? 1 : 2);
}

// Irregular blocks lie in random order with gaps, but for those of reduce_scatter.
void CallCase::place(Memory& memory, uint64_t stream) const {
  const bool scattered = params_.row().irregular() && !params_.row().reduces() && memory.blocks.size() > 1;
  uint64_t state = Digest().add(params_.seed).add(static_cast<uint64_t>(rank_)).add(stream).value();
  const auto below = [&](uint64_t n) { return (state = scramble(state + kGoldenRatio)) % n; };
  std::vector<size_t> order(memory.blocks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (scattered)
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[below(i)]);
  uint64_t end = 0;
  for (const size_t i : order) {
    if (scattered && params_.gaps > 0) end += below(params_.gaps + 1);
    memory.blocks[i].offset = end;
    end += memory.blocks[i].bytes;
  }
  for (const Block& block : memory.blocks) {
    memory.counts.push_back(block.bytes);
    memory.displacements.push_back(block.offset);
  }
  memory.bytes.reserve(kGuard + 64 + end + kGuard);  // not moved below
  const auto start = reinterpret_cast<uintptr_t>(memory.bytes.data()) + kGuard;
  memory.begin = kGuard + (params_.misaligned % 64 + 64 - start % 64) % 64;
  memory.bytes.resize(memory.begin + end + kGuard);
}

ibcoll_collective_args_t CallCase::args() const {
  const Collective& row = params_.row();
  ibcoll_collective_args_t args{};
  args.struct_size = sizeof args;
  args.collective = params_.collective;
  args.scheme = params_.scheme;
  args.algorithm = params_.algorithm;
  args.root = params_.root;
  args.type = params_.type;
  args.op = params_.op;
  args.count = params_.count;
  args.element_bytes = params_.opaque_bytes;
  args.bytes = row.sizes == SizesKnown::kToRoot ? params_.block_bytes(rank_, rank_) : params_.bytes;
  const auto start = [](const Memory& memory) {
    return memory.significant ? const_cast<std::byte*>(memory.bytes.data()) + memory.begin : junk<std::byte>();
  };
  args.send = start(send_);
  args.recv = start(recv_);
  if (in_place()) {
    const bool scatters = row.rooted && row.send.extent == Extent::kBlocks;
    (scatters ? *const_cast<const void**>(&args.recv) : args.send) = IBCOLL_IN_PLACE;
  }
  if (row.sizes == SizesKnown::kRegular) return args;
  const auto arrays = [](const Memory& memory, const uint64_t*& counts, const uint64_t*& displacements) {
    counts = memory.significant ? memory.counts.data() : junk<const uint64_t>();
    displacements = memory.significant ? memory.displacements.data() : junk<const uint64_t>();
  };
  arrays(send_, args.send_counts, args.send_displacements);
  arrays(recv_, args.recv_counts, args.recv_displacements);
  if (row.reduces()) args.recv_counts = params_.counts.data();
  return args;
}

// ---------------------------------------------------------------- content

// What `source` sends `destination`; 0 where all get the same.
void CallCase::write(std::byte* to, int source, int destination, uint64_t bytes, uint64_t round) const {
  if (params_.row().send.extent != Extent::kBlocks) destination = 0;
  const uint64_t key = key_of(params_.seed, source, destination, round);
  if (!params_.row().reduces()) return fill_pattern(to, bytes, key);
  const uint64_t element = params_.element_bytes();
  for (uint64_t i = 0; i * element < bytes; ++i)
    store(to + i * element, params_.type, element, operand(key, i, params_.type, params_.op));
}

void CallCase::write_result(std::byte* to, const Block& block, uint64_t round) const {
  const Collective& row = params_.row();
  if (!row.reduces()) {
    const bool from_each = row.recv.extent == Extent::kBlocks;
    return write(to, from_each ? block.index : params_.root, rank_, block.bytes, round);
  }
  const int sources = row.combines == Combines::kAll ? params_.p : rank_ + (row.combines == Combines::kUpToSelf);
  if (sources == 0) return;  // exscan at rank 0: not written
  const int destination = row.send.extent == Extent::kBlocks ? rank_ : 0;
  const uint64_t element = params_.element_bytes(), count = block.bytes / element;
  std::vector<uint64_t> values(count);
  for (int source = 0; source < sources; ++source) {
    const uint64_t key = key_of(params_.seed, source, destination, round);
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t mine = operand(key, i, params_.type, params_.op);
      values[i] = source == 0 ? alone(mine, params_.op) : combine(values[i], mine, params_.op);
    }
  }
  for (uint64_t i = 0; i < count; ++i) store(to + i * element, params_.type, element, values[i]);
}

// A buffer before the start.
std::vector<std::byte> CallCase::before(const Memory& memory, uint64_t round, bool sends) const {
  const Collective& row = params_.row();
  std::vector<std::byte> image(memory.bytes.size());
  fill_pattern(image.data(), image.size(), key_of(params_.seed, rank_, sends ? -2 : -1, round));
  const bool holds_root_data = row.one_buffer && rank_ == params_.root;
  for (const Block& block : memory.blocks) {
    std::byte* const to = image.data() + memory.begin + block.offset;
    const bool own = in_place() && (row.reduces() || row.send.extent == Extent::kBlocks || block.index == rank_);
    if (sends || own || holds_root_data) write(to, rank_, block.index, block.bytes, round);
  }
  return image;
}

std::vector<std::byte> CallCase::after(uint64_t round) const {
  std::vector<std::byte> image = before(recv_, round, false);
  for (const Block& block : recv_.blocks) {
    if (in_place() && result_in_operand() && block.index != rank_) continue;
    const uint64_t offset = in_place() && result_in_operand() ? 0 : block.offset;
    write_result(image.data() + recv_.begin + offset, block, round);
  }
  return image;
}

void CallCase::fill(uint64_t round) {
  // Persistent requests hold the addresses: the memory stays where it is.
  const std::vector<std::byte> send = before(send_, round, true), recv = before(recv_, round, false);
  std::copy(send.begin(), send.end(), send_.bytes.begin());
  std::copy(recv.begin(), recv.end(), recv_.bytes.begin());
}

std::string CallCase::compare(const char* name, const Memory& memory, const std::vector<std::byte>& wanted,
                              bool blocks) const {
  const uint64_t end = memory.bytes.size() < kGuard ? 0 : memory.bytes.size() - kGuard;
  // reduce_scatter in place: what the result does not replace may be anything.
  const uint64_t defined = in_place() && result_in_operand() ? memory.begin + params_.block_bytes(rank_, rank_) : end;
  for (uint64_t i = 0; i < memory.bytes.size(); ++i) {
    const bool guard = i < memory.begin || i >= end;
    if (memory.bytes[i] == wanted[i] || (!guard && (!blocks || i >= defined))) continue;
    return fmt::format("{}: rank {}: byte {} of the {} buffer of {} is {:02x} instead of {:02x}{}", params_.describe(),
                       rank_, static_cast<long>(i) - static_cast<long>(memory.begin), name, end - memory.begin,
                       static_cast<int>(memory.bytes[i]), static_cast<int>(wanted[i]), guard ? " (a guard)" : "");
  }
  return "";
}

std::string CallCase::check(uint64_t round) const {
  std::string wrong = compare("receive", recv_, after(round), true);
  return !wrong.empty() ? wrong : compare("send", send_, before(send_, round, true), true);
}

bool CallCase::has_block(int index, uint64_t round) const {
  const std::vector<std::byte> wanted = after(round);
  return std::all_of(recv_.blocks.begin(), recv_.blocks.end(), [&](const Block& block) {
    const auto begin = static_cast<std::ptrdiff_t>(recv_.begin + block.offset);
    const auto end = begin + static_cast<std::ptrdiff_t>(block.bytes);
    return block.index != index ||
           std::equal(wanted.begin() + begin, wanted.begin() + end, recv_.bytes.begin() + begin);
  });
}

void CallCase::scribble() {
  for (Memory* const memory : {&send_, &recv_}) std::fill(memory->bytes.begin(), memory->bytes.end(), kScribble);
}

std::string CallCase::check_scribbled() const {
  for (const Memory* const memory : {&send_, &recv_})
    if (!std::all_of(memory->bytes.begin(), memory->bytes.end(), [](std::byte b) { return b == kScribble; }))
      return fmt::format("{}: rank {}: memory was written after the end", params_.describe(), rank_);
  return "";
}

std::string CallCase::check_guards(uint64_t round) const {
  std::string wrong = compare("receive", recv_, before(recv_, round, false), false);
  return !wrong.empty() ? wrong : compare("send", send_, before(send_, round, true), false);
}

}  // namespace ibcoll::oracle
