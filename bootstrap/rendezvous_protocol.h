// SPDX-License-Identifier: BSD-3-Clause
// The messages of ibcoll_run (server) and its ranks (clients) on the rendezvous connection.
//
//   server -> client   nonce                                32 bytes
//   client -> server   Claim: nonce, rank ..., tag          80 bytes, tag = HMAC(secret, "client", both nonces, claim)
//   server -> client   tag                                  32 bytes, tag = HMAC(secret, "server", both nonces, claim)
//   then frames of a header and `length` bytes: kAdmitted or kFailed, then any number of exchanges, until the client
//   sends kGoodbye or either side closes. Before, between and within exchanges the server may report ranks that have
//   ended, and the verdicts of ballots.
//
// Neither side uses a byte of the other before its tag is right; all that is read before has a fixed length. The secret
// itself is never sent here. Frames have no tag: both ends of the connection have proved that they know the secret.
// This does not protect against a router on the way that writes into the connection. All machines of a job have the
// same byte order (little endian).
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/base/status.h"

namespace ibcoll::rendezvous {

static_assert(std::endian::native == std::endian::little, "the wire format is little endian");

using Secret = std::array<std::byte, 32>;
using Nonce = std::array<std::byte, 32>;
using Tag = std::array<std::byte, 32>;

// The environment of a rank.
inline constexpr const char* kRankVariable = "IBCOLL_RUN_RANK";
inline constexpr const char* kSizeVariable = "IBCOLL_RUN_SIZE";
inline constexpr const char* kHostVariable = "IBCOLL_RUN_HOST";               // as the user names it
inline constexpr const char* kNodeVariable = "IBCOLL_RUN_NODE";               // "" or "emulated-0" ...
inline constexpr const char* kLocalVariable = "IBCOLL_RUN_LOCAL";             // "1": the whole job is on this machine
inline constexpr const char* kLocalRanksVariable = "IBCOLL_RUN_LOCAL_RANKS";  // ranks of the job on this machine
inline constexpr const char* kAddressVariable = "IBCOLL_RUN_ADDRESS";         // "127.0.0.1:4711", "[fd00::1]:4711"
inline constexpr const char* kSecretVariable = "IBCOLL_RUN_SECRET_FD";        // a sealed memfd that holds the secret
inline constexpr const char* kSecretPathVariable =
    "IBCOLL_RUN_SECRET_FILE";                                        // a file that holds it, too; "": there is none
inline constexpr const char* kSecretFileName = "ibcoll_job_secret";  // the name of that memfd

inline constexpr uint32_t kMaxRanks = 1U << 20;
inline constexpr uint32_t kMaxBlob = 1U << 20;      // bytes that one rank gives to an exchange
inline constexpr uint64_t kMaxGathered = 1U << 30;  // bytes that an exchange yields
inline constexpr uint32_t kMaxText = 64U << 10;
inline constexpr std::string_view kKeepsGoing = "1";  // deaths do not end the job (--keep-going)

struct Claim {
  Nonce nonce;
  uint32_t rank;
  uint32_t size;
  uint64_t process;  // see process_number; the same in all claims of one process: a second one is not the rank
  Tag tag;
};
static_assert(sizeof(Claim) == 80);

// The number of a copy of the library: the process id and random bits. Two copies in one process have the same process id.
constexpr uint64_t process_number(int32_t pid, uint64_t random) noexcept {
  return (random << 32) | static_cast<uint32_t>(pid);
}
constexpr int32_t pid_in(uint64_t process) noexcept { return static_cast<int32_t>(process); }

enum class Kind : uint32_t {
  kGather = 1,      // client: its blob
  kGathered = 2,    // server: the blobs of all ranks
  kFailed = 3,      // server: text, this exchange cannot complete
  kAskMissing = 4,  // client: nothing; its deadline has passed
  kMissing = 5,     // server: text, the ranks that have not come
  kAdmitted = 6,    // server: kKeepsGoing or nothing; instead of kFailed, which says why the rank is not
  kRankEnded = 7,   // server, at any time after kAdmitted: a rank (4 bytes) and a text, how it ended
  kGoodbye = 8,     // client: nothing; its context ends, and the connection
  kVote = 9,        // client: ballot_messages.h, as the next three
  kWithdraw = 10,   // client: the key of the ballot
  kAccuse = 11,     // client: a rank (4 bytes) that it cannot reach any more
  kVerdict = 12,    // server, at any time after a vote
};

struct FrameHeader {
  Kind kind;
  uint32_t length;  // bytes that follow
};
static_assert(sizeof(FrameHeader) == 8);

// The tag of either side. INTERNAL when the cryptographic library does not start.
Result<Tag> client_tag(const Secret& secret, const Nonce& server_nonce, const Claim& claim);
Result<Tag> server_tag(const Secret& secret, const Nonce& server_nonce, const Claim& claim);
bool equal_in_constant_time(const Tag& a, const Tag& b) noexcept;

// At most 256 bytes from the kernel's generator; for nonces and secrets.
Status fill_random(std::span<std::byte> bytes);

}  // namespace ibcoll::rendezvous
