// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/collectives/registry.h"

namespace ibcoll {

extern const Algorithm kBarrierDissemination, kBarrierShm;
extern const Algorithm kBcastBinomial, kBcastShm;
extern const Algorithm kAllgatherRing, kAllgatherRecursiveDoubling, kAllgatherBruck, kAllgatherShm;
extern const Algorithm kAllgathervRing, kAllgathervRecursiveDoubling, kAllgathervBruck, kAllgathervShm;
extern const Algorithm kAlltoallDirect, kAlltoallPairwise, kAlltoallPapDirect, kAlltoallShm;
extern const Algorithm kAlltoallvDirect, kAlltoallvPairwise, kAlltoallvPapDirect, kAlltoallvShm;
extern const Algorithm kAllreduceRecursiveDoubling, kAllreduceShm;

namespace {

constexpr const Algorithm* kAlgorithms[] = {
    &kBarrierDissemination,
    &kBarrierShm,  //
    &kBcastBinomial,
    &kBcastShm,  //
    &kAllgatherRing,
    &kAllgatherRecursiveDoubling,
    &kAllgatherBruck,
    &kAllgatherShm,  //
    &kAllgathervRing,
    &kAllgathervRecursiveDoubling,
    &kAllgathervBruck,
    &kAllgathervShm,  //
    &kAlltoallDirect,
    &kAlltoallPairwise,
    &kAlltoallPapDirect,
    &kAlltoallShm,  //
    &kAlltoallvDirect,
    &kAlltoallvPairwise,
    &kAlltoallvPapDirect,
    &kAlltoallvShm,  //
    &kAllreduceRecursiveDoubling,
    &kAllreduceShm,
};

}  // namespace

std::span<const Algorithm* const> algorithms() { return kAlgorithms; }

const Algorithm* find_algorithm(ibcoll_collective_t collective, std::string_view name) {
  for (const Algorithm* const algorithm : kAlgorithms)
    if (algorithm->collective == collective && algorithm->name == name) return algorithm;
  return nullptr;
}

}  // namespace ibcoll
