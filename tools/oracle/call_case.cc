// SPDX-License-Identifier: BSD-3-Clause
#include "tools/oracle/call_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/base/hash.h"
#include "tools/oracle/elements.h"

namespace ibcoll::oracle {
namespace {

constexpr uint64_t kGuard = 64;      // bytes before and after each buffer, at least
constexpr uint64_t kAlignment = 64;  // of what CallParams.misaligned counts from
constexpr std::byte kScribble{0x5c};

uint64_t key_of(uint64_t seed, int source, int destination, uint64_t round) {
  return Digest()
      .add(seed)
      .add(round)
      .add(static_cast<uint64_t>(source))
      .add(static_cast<uint64_t>(destination))
      .value();
}

// Words, at memory speed: each one of a block is another one, as the step is odd.
void fill_pattern(std::byte* to, uint64_t bytes, uint64_t key) {
  const uint64_t words = bytes / 8;
  for (uint64_t i = 0; i < words; ++i) {
    const uint64_t word = key + i * kGoldenRatio;
    std::memcpy(to + i * 8, &word, 8);
  }
  const uint64_t rest = key + words * kGoldenRatio;
  for (uint64_t i = words * 8; i < bytes; ++i) to[i] = static_cast<std::byte>(rest >> i % 8 * 8);
}

}  // namespace

uint64_t room_for(const BufferLayout& layout) {
  return layout.significant ? kGuard + kAlignment - 1 + kAlignment - 1 + layout.extent + kGuard : 0;
}

CallCase::CallCase(CallParams params, int rank) : CallCase(std::move(params), rank, Room{}) {}

CallCase::CallCase(CallParams params, int rank, Room room) : layout_(std::move(params), rank) {
  take(send_, layout_.send(), room.send);
  take(recv_, layout_.recv(), room.recv);
}

void CallCase::take(Memory& memory, const BufferLayout& layout, std::span<std::byte> room) {
  if (!layout.significant) return;
  if (room.empty()) {
    memory.own.resize(room_for(layout));
    room = memory.own;
  }
  const auto start = reinterpret_cast<uintptr_t>(room.data()) + kGuard;
  memory.begin = kGuard + (kAlignment - start % kAlignment) % kAlignment + params().misaligned % kAlignment;
  memory.bytes = room.first(memory.begin + layout.extent + kGuard);
}

ibcoll_collective_args_t CallCase::args() const {
  return layout_.args(send_.bytes.data() + send_.begin, recv_.bytes.data() + recv_.begin);
}

// ---------------------------------------------------------------- content

// Writes what `source` sends `destination`, which is 0 where all get the same.
void CallCase::write(std::byte* to, int source, int destination, uint64_t bytes, uint64_t round) const {
  if (layout_.row().send.extent != Extent::kBlocks) destination = 0;
  const uint64_t key = key_of(params().seed, source, destination, round);
  if (!layout_.row().reduces()) return fill_pattern(to, bytes, key);
  const uint64_t width = params().element_bytes();
  for (uint64_t i = 0; i * width < bytes; ++i)
    store(to + i * width, params().type, width, operand(key, i, params().type, params().op));
}

// Writes what this rank gets: part by part, the operands of all ranks that take part.
void CallCase::write_reduced(std::byte* to, uint64_t bytes, uint64_t round) const {
  const Collective& row = layout_.row();
  const int sources =
      row.combines == Combines::kAll ? params().p : layout_.rank() + (row.combines == Combines::kUpToSelf);
  if (sources == 0) return;  // exscan at rank 0: not written
  const int destination = row.send.extent == Extent::kBlocks ? layout_.rank() : 0;
  const uint64_t width = params().element_bytes(), count = bytes / width;
  std::array<uint64_t, 512> values;
  for (uint64_t first = 0; first < count; first += values.size()) {
    const uint64_t part = std::min<uint64_t>(values.size(), count - first);
    for (int source = 0; source < sources; ++source) {
      const uint64_t key = key_of(params().seed, source, destination, round);
      for (uint64_t i = 0; i < part; ++i) {
        const uint64_t mine = operand(key, first + i, params().type, params().op);
        values[i] = source == 0 ? alone(mine, params().op) : combine(values[i], mine, params().op);
      }
    }
    for (uint64_t i = 0; i < part; ++i) store(to + (first + i) * width, params().type, width, values[i]);
  }
}

void CallCase::write_result(std::byte* to, const BufferLayout::Block& block, uint64_t round) const {
  const Collective& row = layout_.row();
  if (row.reduces()) return write_reduced(to, block.bytes, round);
  const int source = row.recv.extent == Extent::kBlocks ? block.index : params().root;
  write(to, source, layout_.rank(), block.bytes, round);
}

// A buffer before the start.
void CallCase::write_before(std::span<std::byte> image, bool sends, uint64_t round) const {
  const Collective& row = layout_.row();
  const int rank = layout_.rank();
  fill_pattern(image.data(), image.size(), key_of(params().seed, rank, sends ? -2 : -1, round));
  const bool holds_root_data = row.one_buffer && rank == params().root;
  for (const BufferLayout::Block& block : layout(sends).blocks) {
    const bool own = layout_.in_place() && (row.reduces() || row.send.extent == Extent::kBlocks || block.index == rank);
    if (!sends && !own && !holds_root_data) continue;
    write(image.data() + memory(sends).begin + block.offset, rank, block.index, block.bytes, round);
  }
}

// The receive buffer after completion.
void CallCase::write_after(std::span<std::byte> image, uint64_t round) const {
  write_before(image, false, round);
  for (const BufferLayout::Block& block : layout_.recv().blocks) {
    if (layout_.result_in_operand() && block.index != layout_.rank()) continue;
    const uint64_t offset = layout_.result_in_operand() ? 0 : block.offset;
    write_result(image.data() + recv_.begin + offset, block, round);
  }
}

void CallCase::fill(uint64_t round) {
  write_before(send_.bytes, true, round);
  write_before(recv_.bytes, false, round);
}

// ---------------------------------------------------------------- verification

// Bytes defined after completion. reduce_scatter in place: what the result does not replace may be anything.
uint64_t CallCase::defined_bytes(bool sends) const {
  return !sends && layout_.result_in_operand() ? params().block_bytes(layout_.rank(), layout_.rank())
                                               : layout(sends).extent;
}

// Compares a buffer and image_; without `blocks`, the guards and gaps alone count.
void CallCase::compare(bool sends, bool blocks, Damage& damage) const {
  const Memory& found = memory(sends);
  const uint64_t size = found.bytes.size();
  if (size == 0 || std::memcmp(found.bytes.data(), image_.data(), size) == 0) return;
  std::vector<bool> ignored(size);
  const auto ignore = [&](uint64_t from, uint64_t to) {
    std::fill(ignored.begin() + static_cast<ptrdiff_t>(from), ignored.begin() + static_cast<ptrdiff_t>(to), true);
  };
  const uint64_t end = found.begin + layout(sends).extent;
  if (blocks) ignore(found.begin + defined_bytes(sends), end);
  if (!blocks)
    for (const auto& block : layout(sends).blocks)
      ignore(found.begin + block.offset, found.begin + block.offset + block.bytes);
  for (uint64_t i = 0; i < size; ++i) {
    if (found.bytes[i] == image_[i] || ignored[i]) continue;
    ++damage.bytes;
    if (!damage.text.empty()) continue;
    damage.text =
        fmt::format("{}: rank {}: byte {} of the {} buffer of {} is {:02x} instead of {:02x}{}", params().describe(),
                    layout_.rank(), static_cast<long>(i) - static_cast<long>(found.begin), sends ? "send" : "receive",
                    end - found.begin, static_cast<int>(found.bytes[i]), static_cast<int>(image_[i]),
                    i < found.begin || i >= end ? " (a guard)" : "");
  }
}

Damage CallCase::damage(uint64_t round) const {
  Damage damage;
  image_.resize(std::max(send_.bytes.size(), recv_.bytes.size()));
  write_after(std::span(image_).first(recv_.bytes.size()), round);
  compare(false, true, damage);
  write_before(std::span(image_).first(send_.bytes.size()), true, round);
  compare(true, true, damage);
  return damage;
}

bool CallCase::has_block(int index, uint64_t round) const {
  image_.resize(recv_.bytes.size());
  write_after(image_, round);
  const auto& blocks = layout_.recv().blocks;
  return std::all_of(blocks.begin(), blocks.end(), [&](const BufferLayout::Block& block) {
    const uint64_t begin = recv_.begin + block.offset;
    return block.index != index || block.bytes == 0 ||
           std::memcmp(image_.data() + begin, recv_.bytes.data() + begin, block.bytes) == 0;
  });
}

void CallCase::scribble() {
  for (Memory* const memory : {&send_, &recv_}) std::fill(memory->bytes.begin(), memory->bytes.end(), kScribble);
}

std::string CallCase::check_scribbled() const {
  for (const Memory* const memory : {&send_, &recv_})
    if (!std::all_of(memory->bytes.begin(), memory->bytes.end(), [](std::byte b) { return b == kScribble; }))
      return fmt::format("{}: rank {}: memory was written after the end", params().describe(), layout_.rank());
  return "";
}

std::string CallCase::check_guards(uint64_t round) const {
  Damage damage;
  image_.resize(std::max(send_.bytes.size(), recv_.bytes.size()));
  for (const bool sends : {false, true}) {
    write_before(std::span(image_).first(memory(sends).bytes.size()), sends, round);
    compare(sends, false, damage);
  }
  return damage.text;
}

}  // namespace ibcoll::oracle
