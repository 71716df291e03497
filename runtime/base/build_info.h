// SPDX-License-Identifier: BSD-3-Clause
// How this library was built.
#pragma once

#include "runtime/base/json.h"

namespace ibcoll {

// version, compiler, build_type, sanitizers, architecture: texts.
Json build_json();

}  // namespace ibcoll
