// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous_protocol.h"

#include <sodium.h>
#include <sys/random.h>

#include <cerrno>
#include <cstring>

namespace ibcoll::rendezvous {
namespace {

constexpr std::string_view kClientLabel = "ibcoll rendezvous 3 client";
constexpr std::string_view kServerLabel = "ibcoll rendezvous 3 server";

static_assert(sizeof(Secret) == crypto_auth_hmacsha256_KEYBYTES && sizeof(Tag) == crypto_auth_hmacsha256_BYTES);

Result<Tag> hmac(const Secret& secret, std::string_view label, const Nonce& server_nonce, const Claim& claim) {
  if (sodium_init() < 0) return error(IBCOLL_ERR_INTERNAL, "libsodium does not start: sodium_init fails");
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, reinterpret_cast<const unsigned char*>(secret.data()), secret.size());
  const auto append = [&](const void* data, size_t bytes) {
    crypto_auth_hmacsha256_update(&state, static_cast<const unsigned char*>(data), bytes);
  };
  append(label.data(), label.size());
  append(server_nonce.data(), server_nonce.size());
  append(claim.nonce.data(), claim.nonce.size());
  append(&claim.rank, sizeof(claim.rank));
  append(&claim.size, sizeof(claim.size));
  append(&claim.process, sizeof(claim.process));
  Tag tag;
  crypto_auth_hmacsha256_final(&state, reinterpret_cast<unsigned char*>(tag.data()));
  return tag;
}

}  // namespace

Result<Tag> client_tag(const Secret& secret, const Nonce& server_nonce, const Claim& claim) {
  return hmac(secret, kClientLabel, server_nonce, claim);
}

Result<Tag> server_tag(const Secret& secret, const Nonce& server_nonce, const Claim& claim) {
  return hmac(secret, kServerLabel, server_nonce, claim);
}

bool equal_in_constant_time(const Tag& a, const Tag& b) noexcept {
  return sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

Status fill_random(std::span<std::byte> bytes) {
  // libsodium would end the process where there are none.
  if (::getentropy(bytes.data(), bytes.size()) == 0) return {};
  return error(IBCOLL_ERR_SYSTEM, "getentropy: {}", std::strerror(errno));
}

}  // namespace ibcoll::rendezvous
