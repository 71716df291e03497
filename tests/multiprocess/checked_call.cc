// SPDX-License-Identifier: BSD-3-Clause
#include "tests/multiprocess/checked_call.h"

#include <utility>

#include "tests/multiprocess/scenario.h"
#include "tools/oracle/blocking_call.h"

namespace ibcoll::multiprocess {

std::string CallParams::describe() const {
  constexpr const char* kSchemes[] = {"auto", "copy", "zero_copy"};
  return fmt::format("{} of {} bytes (root {}, gap {}{}, scheme {}, algorithm {})", ibcoll_collective_name(collective),
                     bytes, root, gap, in_place ? ", in place" : "", kSchemes[scheme], algorithm ? algorithm : "auto");
}

oracle::CallParams CallParams::on(int ranks) const {
  const uint64_t element = bytes % 8 == 0 ? 8 : 1;
  oracle::CallParams exact;
  exact.collective = collective;
  exact.p = ranks;
  exact.in_place = in_place;
  exact.root = root;
  exact.scheme = scheme;
  exact.algorithm = algorithm;
  exact.seed = salt;
  exact.gaps = gap;
  exact.misaligned = salt % 4;
  uint64_t unit = 1;
  if (exact.row().reduces()) {
    exact.type = element == 8 ? IBCOLL_UINT64 : IBCOLL_UINT8;
    exact.op = IBCOLL_SUM;
    unit = element;
    if (!exact.row().irregular()) exact.count = bytes / element;
  } else if (!exact.row().irregular()) {
    exact.bytes = bytes;
  }
  // What alltoallv in place sends is as long as what it receives instead.
  exact.sizes = [size = bytes, symmetric = in_place, unit](int source, int destination) {
    const uint64_t sizes[] = {0, size / 2, size, size == 0 ? 0 : 2 * size + 1};
    const int kind = symmetric ? source + destination : 7 * source + 3 * destination;
    return sizes[(kind + 1) % 4] / unit * unit;
  };
  return exact;
}

CheckedCall::CheckedCall(ibcoll_team_t team, const CallParams& params)
    : CheckedCall(team, params, params.on(ibcoll_team_size(team))) {}

CheckedCall::CheckedCall(ibcoll_team_t team, const CallParams& params, oracle::CallParams exact)
    : team_(team), params_(params), case_(std::move(exact), ibcoll_team_rank(team)) {
  case_.fill(round_);
}

ibcoll_status_t CheckedCall::call() const { return oracle::blocking_call(team_, case_.args()); }

void CheckedCall::fill(uint64_t round) {
  round_ = round;
  case_.fill(round);
}

bool CheckedCall::verify(uint64_t round) const {
  const std::string wrong = case_.check(round);
  return expect(wrong.empty(), "{}: {}", params_.describe(), wrong);
}

bool CheckedCall::verify_guards() const {
  const std::string wrong = case_.check_guards(round_);
  return expect(wrong.empty(), "{}: {}", params_.describe(), wrong);
}

bool CheckedCall::run(uint64_t round) {
  fill(round);
  return expect_ok(call(), params_.describe()) && verify(round);
}

std::vector<CallParams> every_collective(uint64_t bytes, int team_size) {
  std::vector<CallParams> calls;
  for (const Collective& row : kCatalog) {
    CallParams params;
    params.collective = row.id;
    params.bytes = row.moves_data() ? bytes : 0;
    params.root = row.rooted ? team_size / 2 : 0;
    params.gap = 13;
    params.salt = static_cast<uint64_t>(row.id);
    calls.push_back(params);
  }
  return calls;
}

}  // namespace ibcoll::multiprocess
