// SPDX-License-Identifier: BSD-3-Clause
// A range of addresses, as a user writes it: "10.1.0.0/16" or "fd00::/8".
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ibcoll {

// The first `bits` bits of an IPv6 address, which is also what a GID is on RoCE; IPv4 as ::ffff:a.b.c.d.
struct Subnet {
  std::array<uint8_t, 16> address{};
  int bits = 0;

  bool contains(const std::array<uint8_t, 16>& other) const {
    for (int bit = 0; bit < bits; ++bit) {
      const auto byte = static_cast<size_t>(bit / 8);
      const int mask = 0x80 >> bit % 8;
      if ((other[byte] & mask) != (address[byte] & mask)) return false;
    }
    return true;
  }
};

inline std::optional<Subnet> parse_subnet(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  Subnet subnet;
  const char* const end = text.data() + text.size();
  const auto number = std::from_chars(text.data() + slash + 1, end, subnet.bits);
  if (number.ec != std::errc() || number.ptr != end || subnet.bits < 0) return std::nullopt;
  const std::string host(text.substr(0, slash));
  if (::inet_pton(AF_INET, host.c_str(), subnet.address.data() + 12) == 1) {
    if (subnet.bits > 32) return std::nullopt;
    subnet.address[10] = subnet.address[11] = 0xff;
    subnet.bits += 96;
    return subnet;
  }
  if (::inet_pton(AF_INET6, host.c_str(), subnet.address.data()) != 1 || subnet.bits > 128) return std::nullopt;
  return subnet;
}

}  // namespace ibcoll
