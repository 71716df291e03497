// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous_protocol.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <sys/random.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace ibcoll::rendezvous {
namespace {

constexpr std::string_view kClientLabel = "ibcoll rendezvous 1 client";
constexpr std::string_view kServerLabel = "ibcoll rendezvous 1 server";

// A context of our own, so that the host program's OpenSSL configuration is neither read nor fixed by us.
struct FreeContext {
  void operator()(OSSL_LIB_CTX* context) const { OSSL_LIB_CTX_free(context); }
};

Result<Tag> hmac(const Secret& secret, std::string_view label, const Nonce& server_nonce, const Claim& claim) {
  std::array<unsigned char, 128> text;
  size_t length = 0;
  const auto append = [&](const void* data, size_t bytes) {
    std::memcpy(text.data() + length, data, bytes);
    length += bytes;
  };
  append(label.data(), label.size());
  append(server_nonce.data(), server_nonce.size());
  append(claim.nonce.data(), claim.nonce.size());
  append(&claim.rank, sizeof(claim.rank));
  append(&claim.size, sizeof(claim.size));

  static const std::unique_ptr<OSSL_LIB_CTX, FreeContext> context(OSSL_LIB_CTX_new());
  Tag tag;
  size_t tag_length = 0;
  if (!context ||
      EVP_Q_mac(context.get(), "HMAC", nullptr, "SHA256", nullptr, secret.data(), secret.size(), text.data(), length,
                reinterpret_cast<unsigned char*>(tag.data()), tag.size(), &tag_length) == nullptr ||
      tag_length != tag.size()) {
    return error(IBCOLL_ERR_INTERNAL, "libcrypto computes no HMAC-SHA256; is its default provider installed?");
  }
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
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Status fill_random(std::span<std::byte> bytes) {
  for (size_t filled = 0; filled < bytes.size();) {
    const ssize_t got = ::getrandom(bytes.data() + filled, bytes.size() - filled, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return error(IBCOLL_ERR_SYSTEM, "getrandom: {}", std::strerror(errno));
    filled += static_cast<size_t>(got);
  }
  return {};
}

}  // namespace ibcoll::rendezvous
