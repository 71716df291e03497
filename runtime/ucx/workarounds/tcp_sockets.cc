// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/ucx/workarounds/tcp_sockets.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <linux/filter.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "runtime/machine/descriptors.h"

namespace ibcoll::ucx {
namespace {

constexpr Host kMappedIpv4{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

std::optional<TcpAddress> from(const sockaddr* address) {
  TcpAddress result;
  if (address->sa_family == AF_INET) {
    const auto* in = reinterpret_cast<const sockaddr_in*>(address);
    result.host = kMappedIpv4;
    std::memcpy(result.host.data() + 12, &in->sin_addr, 4);
    result.port = ntohs(in->sin_port);
  } else if (address->sa_family == AF_INET6) {
    const auto* in = reinterpret_cast<const sockaddr_in6*>(address);
    std::memcpy(result.host.data(), &in->sin6_addr, 16);
    result.port = ntohs(in->sin6_port);
  } else {
    return std::nullopt;
  }
  return result;
}

std::optional<TcpAddress> ask(int socket, int (*name)(int, sockaddr*, socklen_t*)) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (name(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) return std::nullopt;
  return from(reinterpret_cast<const sockaddr*>(&address));
}

int option_of(int socket, int option) {
  int value = -1;
  socklen_t length = sizeof value;
  return ::getsockopt(socket, SOL_SOCKET, option, &value, &length) == 0 ? value : -1;
}

// One word after the other of the source address, as the IP header has it, then the source port. No jump is longer than
// 255 steps, so each port has its own way out.
std::vector<sock_filter> filter_of(const std::map<Host, std::vector<uint16_t>>& sources, bool ipv4) {
  const uint32_t at = static_cast<uint32_t>(SKF_NET_OFF) + (ipv4 ? 12 : 8);
  const unsigned words = ipv4 ? 1 : 4;
  std::vector<sock_filter> code;
  for (const auto& [host, ports] : sources) {
    if (is_ipv4(host) != ipv4) continue;
    for (unsigned word = 0; word < words; ++word) {
      uint32_t wanted = 0;
      std::memcpy(&wanted, host.data() + (ipv4 ? 12 : 4 * word), sizeof wanted);
      // Over the jump to the next host, or over the rest of the words to it.
      const uint8_t equal = word + 1 == words ? 1 : 0, other = static_cast<uint8_t>(2 * (words - 1 - word));
      code.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at + 4 * word));
      code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohl(wanted), equal, other));
    }
    const auto rest = static_cast<uint32_t>(ports.empty() ? 1 : 2 + 2 * ports.size());
    code.push_back(BPF_STMT(BPF_JMP | BPF_JA, rest));
    if (!ports.empty()) code.push_back(BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 0));
    for (const uint16_t port : ports) {
      code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, port, 0, 1));
      code.push_back(BPF_STMT(BPF_RET | BPF_K, 0xffffffff));
    }
    code.push_back(BPF_STMT(BPF_RET | BPF_K, ports.empty() ? 0xffffffff : 0));
  }
  code.push_back(BPF_STMT(BPF_RET | BPF_K, 0));
  return code;
}

}  // namespace

bool for_each_tcp_socket(const std::function<void(int)>& visit) {
  struct Close {
    void operator()(DIR* folder) const { ::closedir(folder); }
  };
  const HighDescriptors high;
  const std::unique_ptr<DIR, Close> folder(::opendir("/proc/self/fd"));
  if (folder == nullptr) return false;
  while (const dirent* entry = ::readdir(folder.get())) {
    if (entry->d_name[0] == '.') continue;
    const int descriptor = std::atoi(entry->d_name);
    if (is_tcp(descriptor)) visit(descriptor);
  }
  return true;
}

bool is_tcp(int descriptor) { return option_of(descriptor, SO_PROTOCOL) == IPPROTO_TCP; }

bool listens(int socket) { return option_of(socket, SO_ACCEPTCONN) == 1; }

std::optional<TcpAddress> address_of(const sockaddr* address) { return from(address); }

std::optional<TcpAddress> local_address(int socket) { return ask(socket, ::getsockname); }

std::optional<TcpAddress> peer_address(int socket) { return ask(socket, ::getpeername); }

uint64_t identity_of(int socket) {
  struct stat state {};
  return ::fstat(socket, &state) == 0 ? state.st_ino : 0;
}

bool is_ipv4(const Host& host) { return std::equal(host.begin(), host.begin() + 12, kMappedIpv4.begin()); }

bool is_loopback(const Host& host) {
  if (is_ipv4(host)) return host[12] == 127;
  return std::all_of(host.begin(), host.end() - 1, [](uint8_t byte) { return byte == 0; }) && host[15] == 1;
}

std::string text_of(const Host& host) {
  char text[INET6_ADDRSTRLEN] = "";
  const bool ipv4 = is_ipv4(host);
  ::inet_ntop(ipv4 ? AF_INET : AF_INET6, host.data() + (ipv4 ? 12 : 0), text, sizeof text);
  return text;
}

std::vector<Host> own_hosts() {
  std::vector<Host> hosts;
  ifaddrs* raw = nullptr;
  if (::getifaddrs(&raw) != 0) return hosts;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> entries(raw, &::freeifaddrs);
  for (const ifaddrs* entry = raw; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_LOOPBACK) != 0) continue;
    if (const std::optional<TcpAddress> address = from(entry->ifa_addr)) hosts.push_back(address->host);
  }
  std::sort(hosts.begin(), hosts.end());
  hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
  return hosts;
}

bool admit_only(int listener, const std::map<Host, std::vector<uint16_t>>& sources) {
  const std::optional<TcpAddress> own = local_address(listener);
  if (!own) return false;
  std::vector<sock_filter> code = filter_of(sources, is_ipv4(own->host));
  if (code.size() > BPF_MAXINSNS) return false;
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  return ::setsockopt(listener, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0;
}

bool admit_all(int socket) {
  const int ignored = 0;  // but wanted
  return ::setsockopt(socket, SOL_SOCKET, SO_DETACH_FILTER, &ignored, sizeof ignored) == 0 || errno == ENOENT;
}

}  // namespace ibcoll::ucx
