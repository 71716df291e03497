// SPDX-License-Identifier: BSD-3-Clause
// Trees of the ranks 0 to p - 1, with root 0, down which a broadcast goes.
#pragma once

#include <cstdint>

#include "runtime/collectives/framework/cost_patterns.h"

namespace ibcoll::bcast {

// The digits of v to base r name the way from the root: the parent of v is v without its lowest digit that is not 0,
// and its children have one digit more, below that one. r = 2: the binomial tree.
class KnomialTree {
 public:
  KnomialTree(int p, int v, int radix) : v_(v), radix_(radix) {
    while (weight_ < p && v / weight_ % radix == 0) weight_ *= radix, slots_ += radix - 1;
  }
  int parent() const { return static_cast<int>(v_ - v_ / weight_ % radix_ * weight_); }
  // The children, the one with most ranks below it first, are child(0) to child(slots() - 1), without those of p and
  // more.
  int slots() const { return slots_; }
  int64_t child(int slot) const {
    int64_t weight = weight_ / radix_;
    for (int level = slot / (radix_ - 1); level > 0; --level) weight /= radix_;
    return v_ + (1 + slot % (radix_ - 1)) * weight;
  }
  static TreeShape shape(int p, int radix) {
    int levels = 0;
    for (int64_t reached = 1; reached < p; reached *= radix) ++levels;
    const double fanout = std::min<double>(p - 1.0, static_cast<double>(levels) * (radix - 1));
    return {p, static_cast<double>(levels), std::max(1.0, fanout), p - 1.0};
  }
  static double height(int p, int radix) { return knomial_height(p, std::clamp(radix, 2, std::max(2, p))); }

 private:
  int v_, radix_;
  int64_t weight_ = 1;  // of the lowest digit of v that is not 0; of the root: the first power of r that is not below p
  int slots_ = 0;
};

inline double knomial_us(int p, int radix, const CostModel& m, double bytes) {
  const TreeShape shape = KnomialTree::shape(p, radix);
  // The last of r - 1 children gets its message after those of the others.
  const double earlier = std::max(0.0, std::min(shape.fanout - shape.depth, shape.depth * (radix - 2)));
  return tree_us(shape, m, bytes, bytes) + cost::kPathOfCall * earlier * (2 * m.cpu_us + m.lone_beta_us() * bytes);
}

// Each rank sends to the next one.
class Chain {
 public:
  Chain(int p, int v, int) : slots_(v + 1 < p ? 1 : 0), v_(v) {}
  int parent() const { return v_ - 1; }
  int slots() const { return slots_; }
  int64_t child(int) const { return v_ + 1; }
  static TreeShape shape(int p, int) { return {p, std::max(1.0, p - 1.0), 1, p - 1.0}; }
  static double height(double p, int) { return (p - 1) / 2; }

 private:
  int slots_, v_;
};

}  // namespace ibcoll::bcast
