// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/trace/trace_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "runtime/base/log.h"
#include "runtime/base/start_folder.h"
#include "runtime/machine/topology.h"
#include "runtime/trace/trace_sites.h"

namespace ibcoll {
namespace {

constexpr size_t kBytesPerWrite = 1 << 16;

// A folder: one file per rank in it. A device: itself. Else the name, a dot and the rank.
std::string trace_path(const std::string& setting, int rank) {
  struct stat there {};
  const bool exists = ::stat(setting.c_str(), &there) == 0;
  if (exists && S_ISDIR(there.st_mode)) return fmt::format("{}/trace.{}", setting, rank);
  if (exists && !S_ISREG(there.st_mode)) return setting;
  return fmt::format("{}.{}", setting, rank);
}

Status write_trace_text(int fd, std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t written = ::write(fd, text.data() + at, text.size() - at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return error(IBCOLL_ERR_INTERNAL, "{}", std::strerror(written < 0 ? errno : ENOSPC));
    at += static_cast<size_t>(written);
  }
  text.clear();
  return {};
}

std::string moment_text(int64_t ns) { return ns == TracedPeer::kNever ? "-" : std::to_string(ns); }

// "700/3/800/90000": published at 700, waited for rank 3 from 800 to 90000. "-": nothing passed through the window.
std::string node_text(const TracedCall& call) {
  if (call.published_ns == TracedCall::kNever && call.waited_for < 0) return "-";
  const std::string peer = call.waited_for < 0 ? "-" : std::to_string(call.waited_for);
  return fmt::format("{}/{}/{}/{}", moment_text(call.published_ns), peer, moment_text(call.waited_from_ns),
                     moment_text(call.waited_until_ns));
}

std::string trace_line(const TracedCall& call, size_t site, const std::string& peers) {
  const Algorithm& a = *call.algorithm;
  const std::string parameter = a.parameter.unit == Parameter::Unit::kNone ? "" : fmt::format(":{}", call.parameter);
  return fmt::format("{} {} {} {} {}{} {:x} {} {} {} {} {} {}\n", call.arrival_ns, call.exit_ns,
                     kCatalog[a.collective].name, call.bytes, a.name, parameter, call.team, call.op,
                     static_cast<uint32_t>(call.ranks), call.failed ? "failed" : "ok", site, peers, node_text(call));
}

// "1/120/130/145,2/150/-/160": those of the call of this number, in the order in which this rank first used them.
// `next` rises from call to call. "-": none are kept.
std::string peers_text(const TraceBuffer& buffer, uint32_t number, uint64_t& next) {
  const auto ahead = [&] { return static_cast<int32_t>(buffer.peer(next).call - number); };
  std::string text;
  for (; next < buffer.peers_kept() && ahead() <= 0; ++next) {
    const TracedPeer& peer = buffer.peer(next);
    if (ahead() < 0 || buffer.cut(number)) continue;
    text += fmt::format("{}{}/{}/{}/{}", text.empty() ? "" : ",", peer.job_rank, moment_text(peer.begun_ns),
                        moment_text(peer.sent_ns), moment_text(peer.landed_ns));
  }
  return text.empty() ? "-" : text;
}

// CLOCK_MONOTONIC is one clock until this machine boots again.
std::string trace_clock() {
  const std::string boot = boot_id();
  return boot.empty() ? "?" : boot;
}

Status write_trace_to(int fd, const TraceBuffer& buffer, const TraceHeader& header) {
  std::string text = fmt::format(
      "# ibcoll trace 4 rank {} ranks {} job {:016x} clock {} alpha_us {:.6g} beta_us_per_byte {:.6g} ", header.rank,
      header.ranks, header.job, trace_clock(), header.link.alpha_us, header.link.beta_us_per_byte);
  TraceSites sites;
  for (uint64_t i = 0; i < buffer.kept(); ++i) sites.number(buffer[i].site);
  text += fmt::format("calls {} dropped {} sites {}\n", buffer.kept(), buffer.dropped(), sites.size());
  text += sites.lines();
  uint64_t next_peer = 0;
  for (uint64_t i = 0; i < buffer.kept(); ++i) {
    const TracedCall& call = buffer[i];
    text += trace_line(call, sites.number(call.site), peers_text(buffer, buffer.number(i), next_peer));
    if (text.size() < kBytesPerWrite) continue;
    if (Status status = write_trace_text(fd, text); !status.ok()) return status;
  }
  text += "end\n";
  return write_trace_text(fd, text);
}

void complain_of_trace(const std::string& path, const char* why) {
  log(LogLevel::kError,
      "IBCOLL_TRACE: cannot write {}: {}; the program goes on and this rank has no trace: name a file in a folder that "
      "exists and has room",
      path, why);
}

}  // namespace

std::unique_ptr<TraceFile> TraceFile::open(const std::string& setting, size_t calls, size_t peers, int rank) {
  if (setting.empty()) return nullptr;
  std::string path = trace_path(from_start_folder(setting), rank);
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0644));
  if (!fd) {
    complain_of_trace(path, std::strerror(errno));
    return nullptr;
  }
  try {
    return std::unique_ptr<TraceFile>(new TraceFile(path, std::move(fd), calls, peers));
  } catch (const std::bad_alloc&) {
    complain_of_trace(path, "no memory for IBCOLL_TRACE_CALLS calls of 96 bytes and IBCOLL_TRACE_PEERS peers of 32");
    return nullptr;
  }
}

void TraceFile::write(const TraceHeader& header) noexcept {
  if (!fd_) return;
  try {
    const Status status = write_trace_to(fd_.get(), buffer(), header);
    if (!status.ok()) complain_of_trace(path_, status.text().c_str());
    const int fd = fd_.release();
    if (::close(fd) != 0 && status.ok()) complain_of_trace(path_, std::strerror(errno));
  } catch (const std::bad_alloc&) {
    complain_of_trace(path_, "no memory");
  }
}

}  // namespace ibcoll
