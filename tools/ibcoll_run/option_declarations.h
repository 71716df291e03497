// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <CLI/CLI.hpp>

#include "tools/ibcoll_run/options.h"

namespace ibcoll::run {

// The complaint about an option that is given without a value.
inline constexpr const char* kNoValue = "a value is missing";

// The options of one program; they may also follow a ":".
void declare(CLI::App& app, ProgramOptions& options);
// The options of the whole job.
void declare(CLI::App& app, Options& options);

}  // namespace ibcoll::run
