// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/agent_channel.h"

#include <cstring>
#include <nlohmann/json.hpp>

namespace ibcoll::run {
namespace {

using nlohmann::json;

struct WireHeader {
  uint32_t message;
  int32_t rank;
  int32_t value;
  uint32_t length;
};
static_assert(sizeof(WireHeader) == 16);

constexpr uint32_t kLongestBody = 64U << 20;  // an environment may be large; output comes in small pieces

}  // namespace

void send_frame(ByteQueue& queue, const AgentFrame& frame) {
  const WireHeader header{static_cast<uint32_t>(frame.message), frame.rank, frame.value,
                          static_cast<uint32_t>(frame.body.size())};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  bytes += frame.body;
  queue.write(bytes);
}

void AgentFrameReader::add(std::string_view bytes) {
  buffer_.erase(0, taken_);
  taken_ = 0;
  buffer_ += bytes;
}

Result<bool> AgentFrameReader::next(AgentFrame& frame) {
  const std::string_view rest = std::string_view(buffer_).substr(taken_);
  WireHeader header;
  if (rest.size() < sizeof(header)) return false;
  std::memcpy(&header, rest.data(), sizeof(header));
  if (header.length > kLongestBody || header.message < static_cast<uint32_t>(Message::kJob) ||
      header.message > static_cast<uint32_t>(Message::kAlive)) {
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "damaged frame: message {}, {} bytes", header.message, header.length);
  }
  if (rest.size() < sizeof(header) + header.length) return false;
  frame = {static_cast<Message>(header.message), header.rank, header.value, rest.substr(sizeof(header), header.length)};
  taken_ += sizeof(header) + header.length;
  return true;
}

std::string pack_job(const HostJob& job) {
  std::vector<int> secret;
  for (const std::byte byte : job.secret) secret.push_back(std::to_integer<int>(byte));
  const json fields = {{"host", job.host},
                       {"first_rank", job.first_rank},
                       {"count", job.count},
                       {"size", job.size},
                       {"nodes", job.nodes},
                       {"address", job.address},
                       {"local", job.local},
                       {"bind", job.bind},
                       {"secret", secret},
                       {"folder", job.folder},
                       {"program", job.program},
                       {"environment", job.environment},
                       {"patience", job.patience.with_launcher}};
  std::string packed;
  json::to_msgpack(fields, packed);
  return packed;
}

Result<HostJob> unpack_job(std::string_view bytes) try {
  const json packed = json::from_msgpack(bytes.begin(), bytes.end());
  HostJob job;
  packed.at("host").get_to(job.host);
  packed.at("first_rank").get_to(job.first_rank);
  packed.at("count").get_to(job.count);
  packed.at("size").get_to(job.size);
  packed.at("nodes").get_to(job.nodes);
  packed.at("address").get_to(job.address);
  packed.at("local").get_to(job.local);
  packed.at("bind").get_to(job.bind);
  packed.at("folder").get_to(job.folder);
  packed.at("program").get_to(job.program);
  packed.at("environment").get_to(job.environment);
  packed.at("patience").get_to(job.patience.with_launcher);
  const auto secret = packed.at("secret").get<std::vector<int>>();
  if (secret.size() != job.secret.size() || job.program.empty() || job.count < 1) {
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "the job description is damaged");
  }
  for (size_t i = 0; i < secret.size(); ++i) job.secret[i] = static_cast<std::byte>(secret[i]);
  return job;
} catch (const json::exception& reason) {
  return error(IBCOLL_ERR_INVALID_ARGUMENT, "the job description is damaged: {}", reason.what());
}

}  // namespace ibcoll::run
