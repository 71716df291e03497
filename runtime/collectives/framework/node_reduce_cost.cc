// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/collectives/framework/node_reduce.h"

namespace ibcoll {

double reduce_on_node_us(const Shape& s, const CostModel& m, int owners) {
  const double n = static_cast<double>(s.bytes), area = static_cast<double>(s.area_bytes);
  const CostModel mine = model_of_leaders(s, m, owners);
  const double segment = n / owners;
  const double written = owners == s.most_local ? n - segment : n;  // all but their own
  return (1 + n / area) * m.step_us(s.most_local) + m.copies_us(written) +
         mine.copies_us(segment * (s.most_local - 1)) + mine.combines_us(segment);
}

double share_on_node_us(const Shape& s, const CostModel& m, int owners) {
  const double n = static_cast<double>(s.bytes), segment = n / owners;
  const double pieces = 1 + n / static_cast<double>(s.area_bytes) / owners;
  return pieces * m.step_us(owners) + model_of_leaders(s, m, owners).copies_us(segment) + m.shared_copies_us(n);
}

Shape counterparts_of(Shape s, int owners) {
  s.p = s.nodes;
  s.bytes = (s.bytes + static_cast<uint64_t>(owners) - 1) / static_cast<uint64_t>(owners);
  s.fewest_local = s.most_local = 1;
  return s;
}

}  // namespace ibcoll
