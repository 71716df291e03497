// SPDX-License-Identifier: BSD-3-Clause
// The words of a command line, before anything is known of what the options mean.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace ibcoll::run {

struct CommandPart {
  std::vector<std::string> options;  // as ibcoll_run spells them
  std::vector<std::string> program;  // with arguments; may be empty
};

// Whether an option of this name ("-n", "--host") exists, and whether its value follows as a word.
enum class OptionKind { kUnknown, kFlag, kValue };
using KindOf = std::function<OptionKind(const std::string& name)>;

// Cuts "-n 1 ./a x : -n 2 ./b" at each ":" after a program, and takes what users of mpirun and srun type: -np, -H,
// -wdir, one dash before a long name. `--` before a program gives it all that follows, ":" too. INVALID_ARGUMENT:
// nothing follows a ":".
Result<std::vector<CommandPart>> split_command(std::span<const char* const> words, const KindOf& kind_of);

}  // namespace ibcoll::run
