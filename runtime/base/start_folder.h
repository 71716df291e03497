// SPDX-License-Identifier: BSD-3-Clause
// Relative paths mean what they meant when the program began, whatever directory it has changed to since.
#pragma once

#include <string>

#include "runtime/base/status.h"

namespace ibcoll {

// The path as it is, when it is absolute; else from the directory in which this library was loaded.
IBCOLL_MODULE_API std::string from_start_folder(const std::string& path);

}  // namespace ibcoll
