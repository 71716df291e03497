// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/trace/trace_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <vector>

#include "runtime/base/log.h"
#include "runtime/base/start_folder.h"
#include "runtime/trace/trace_sites.h"
#include "runtime/trace/trace_text.h"

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

// A call that is written: its peers are [first, end) of those that are kept.
struct Written {
  uint64_t index = 0;
  uint64_t first = 0, end = 0;
};

// In the order of their arrival. The buffer has them in the order in which they ended.
std::vector<Written> written_calls(const TraceBuffer& buffer) {
  std::vector<Written> all(buffer.kept());
  const auto ahead = [&](uint64_t peer, uint32_t number) {
    return static_cast<int32_t>(buffer.peer(peer).call - number);
  };
  uint64_t next = 0;
  for (uint64_t i = 0; i < all.size(); ++i) {
    const uint32_t number = buffer.number(i);
    while (next < buffer.peers_kept() && ahead(next, number) < 0) ++next;
    const uint64_t first = next;
    while (next < buffer.peers_kept() && ahead(next, number) == 0) ++next;
    all[i] = {i, first, buffer.cut(number) ? first : next};
  }
  std::stable_sort(all.begin(), all.end(), [&](const Written& a, const Written& b) {
    return buffer[a.index].arrival_ns < buffer[b.index].arrival_ns;
  });
  return all;
}

Status write_trace_to(int fd, const TraceBuffer& buffer, const TraceHeader& header) {
  const std::vector<Written> calls = written_calls(buffer);
  const TraceLists& lists = buffer.lists();
  TraceSites sites;
  TraceSizes sizes(lists);
  for (const Written& one : calls) {
    sites.number(buffer[one.index].site);
    sizes.number(buffer[one.index].counts);
  }
  std::string text = header_text(header);
  text += fmt::format("calls {} dropped {} sites {} teams {} counts {}\n", calls.size(), buffer.dropped(), sites.size(),
                      lists.teams().size(), sizes.size());
  text += sites.lines();
  text += teams_text(lists);
  text += sizes.lines();
  for (const Written& one : calls) {
    const TracedCall& call = buffer[one.index];
    text += call_text(call, sites.number(call.site), sizes.number(call.counts), peers_text(buffer, one.first, one.end));
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
    complain_of_trace(path, "no memory for IBCOLL_TRACE_CALLS calls of 120 bytes and IBCOLL_TRACE_PEERS peers of 32");
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
