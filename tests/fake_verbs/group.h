// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <vector>

#include "runtime/verbs/transport.h"
#include "tests/conformance/group_network.h"
#include "tests/fake_verbs/script.h"

namespace ibcoll::fake_verbs {

// Ranks on the present fabric; `settings`: "NAME=VALUE". nullptr: one of them cannot open its device, see the log.
std::unique_ptr<conformance::Group> make_group(int size, uint64_t seed, std::vector<const char*> settings = {});

}  // namespace ibcoll::fake_verbs
