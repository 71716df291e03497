// SPDX-License-Identifier: BSD-3-Clause
// The hosts a job runs on, as --host and --hostfile give them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace ibcoll::run {

struct HostEntry {
  std::string name;              // as the remote shell command takes it; may be user@host
  std::optional<int> slots;      // ranks it offers; none: not said
  std::optional<int> max_slots;  // ranks that it takes where more are wanted than the slots; none: any number
};

// A host's name in small letters, as names that differ in capitals alone are the same host. Not the user before the @.
std::string without_case(std::string name);

// "h1:4,h2:4,[fd00::1]:2". "h1,h1" is "h1:2". A host with 0 slots is left out. INVALID_ARGUMENT names the entry that is
// wrong.
Result<std::vector<HostEntry>> parse_host_list(std::string_view text);

// One host a line: `h1`, `h1:4`, `h1 slots=4` or `h1 slots=4 max_slots=8`, or one line for each slot; # starts a
// comment. `path` is for messages: "PATH:LINE: ...".
Result<std::vector<HostEntry>> parse_hostfile(std::string_view content, std::string_view path);

}  // namespace ibcoll::run
