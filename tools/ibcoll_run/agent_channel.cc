// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/agent_channel.h"

#include <algorithm>
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

constexpr uint32_t kLongestBody = 64U << 20;  // an environment may be large; output comes in small frames

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
  json programs = json::array();
  for (const RankProgram& program : job.programs)
    programs.push_back({{"words", program.words}, {"environment", program.environment}, {"folder", program.folder}});
  const json fields = {{"host", job.host},
                       {"ranks", job.ranks},
                       {"size", job.size},
                       {"nodes", job.nodes},
                       {"address", job.address},
                       {"local", job.local},
                       {"bind_to", job.binding.to},
                       {"cores_per_rank", job.binding.cores_per_rank},
                       {"report_bindings", job.binding.report},
                       {"terminal", job.terminal.use},
                       {"rows", job.terminal.rows},
                       {"columns", job.terminal.columns},
                       {"secret", secret},
                       {"folder", job.folder},
                       {"program_of", job.program_of},
                       {"programs", programs},
                       {"environment", job.environment},
                       {"launcher_silence", job.timeouts.launcher_silence}};
  std::string packed;
  json::to_msgpack(fields, packed);
  return packed;
}

namespace {

bool is_whole(const HostJob& job) {
  const auto runs = [&](int program) { return program >= 0 && static_cast<size_t>(program) < job.programs.size(); };
  return !job.ranks.empty() && job.program_of.size() == job.ranks.size() &&
         (job.nodes.empty() || job.nodes.size() == job.ranks.size()) && job.binding.cores_per_rank >= 1 &&
         std::all_of(job.program_of.begin(), job.program_of.end(), runs) &&
         std::none_of(job.programs.begin(), job.programs.end(),
                      [](const auto& program) { return program.words.empty(); });
}

}  // namespace

Result<HostJob> unpack_job(std::string_view bytes) try {
  const json packed = json::from_msgpack(bytes.begin(), bytes.end());
  HostJob job;
  packed.at("host").get_to(job.host);
  packed.at("ranks").get_to(job.ranks);
  packed.at("size").get_to(job.size);
  packed.at("nodes").get_to(job.nodes);
  packed.at("address").get_to(job.address);
  packed.at("local").get_to(job.local);
  packed.at("bind_to").get_to(job.binding.to);
  packed.at("cores_per_rank").get_to(job.binding.cores_per_rank);
  packed.at("report_bindings").get_to(job.binding.report);
  packed.at("terminal").get_to(job.terminal.use);
  packed.at("rows").get_to(job.terminal.rows);
  packed.at("columns").get_to(job.terminal.columns);
  packed.at("folder").get_to(job.folder);
  packed.at("program_of").get_to(job.program_of);
  for (const json& program : packed.at("programs")) {
    job.programs.push_back({program.at("words").get<std::vector<std::string>>(),
                            program.at("environment").get<std::vector<std::string>>(),
                            program.at("folder").get<std::string>()});
  }
  packed.at("environment").get_to(job.environment);
  packed.at("launcher_silence").get_to(job.timeouts.launcher_silence);
  const auto secret = packed.at("secret").get<std::vector<int>>();
  if (secret.size() != job.secret.size() || !is_whole(job)) {
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "the job description is damaged");
  }
  for (size_t i = 0; i < secret.size(); ++i) job.secret[i] = static_cast<std::byte>(secret[i]);
  return job;
} catch (const json::exception& reason) {
  return error(IBCOLL_ERR_INVALID_ARGUMENT, "the job description is damaged: {}", reason.what());
}

}  // namespace ibcoll::run
