// SPDX-License-Identifier: BSD-3-Clause
// How this library was built.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace ibcoll {

// version, compiler, build_type, sanitizers, architecture: texts.
nlohmann::json build_json();

}  // namespace ibcoll
