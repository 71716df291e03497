// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/collectives/framework/registry.h"

namespace ibcoll {

extern const Algorithm kBarrierDissemination, kBarrierShm;
extern const Algorithm kBcastBinomial, kBcastShm, kBcastSingleCopy;
extern const Algorithm kAllgatherRing, kAllgatherRecursiveDoubling, kAllgatherBruck, kAllgatherShm,
    kAllgatherSingleCopy, kAllgatherPapShmDirect;
extern const Algorithm kAllgathervRing, kAllgathervRecursiveDoubling, kAllgathervBruck, kAllgathervShm,
    kAllgathervSingleCopy, kAllgathervPapShmDirect;
extern const Algorithm kAlltoallDirect, kAlltoallPairwise, kAlltoallPapDirect, kAlltoallShm, kAlltoallSingleCopy,
    kAlltoallPapShmDirect;
extern const Algorithm kAlltoallvDirect, kAlltoallvPairwise, kAlltoallvPapDirect, kAlltoallvShm;
extern const Algorithm kAllreduceRecursiveDoubling, kAllreduceShm, kAllreduceSingleCopy;

namespace {

constexpr const Algorithm* kAlgorithms[] = {
    &kBarrierDissemination,
    &kBarrierShm,  //
    &kBcastBinomial,
    &kBcastShm,
    &kBcastSingleCopy,  //
    &kAllgatherRing,
    &kAllgatherRecursiveDoubling,
    &kAllgatherBruck,
    &kAllgatherShm,
    &kAllgatherSingleCopy,
    &kAllgatherPapShmDirect,  //
    &kAllgathervRing,
    &kAllgathervRecursiveDoubling,
    &kAllgathervBruck,
    &kAllgathervShm,
    &kAllgathervSingleCopy,
    &kAllgathervPapShmDirect,  //
    &kAlltoallDirect,
    &kAlltoallPairwise,
    &kAlltoallPapDirect,
    &kAlltoallShm,
    &kAlltoallSingleCopy,
    &kAlltoallPapShmDirect,  //
    &kAlltoallvDirect,
    &kAlltoallvPairwise,
    &kAlltoallvPapDirect,
    &kAlltoallvShm,  //
    &kAllreduceRecursiveDoubling,
    &kAllreduceShm,
    &kAllreduceSingleCopy,
};

}  // namespace

std::span<const Algorithm* const> algorithms() { return kAlgorithms; }

const Algorithm* find_algorithm(ibcoll_collective_t collective, std::string_view name) {
  for (const Algorithm* const algorithm : kAlgorithms)
    if (algorithm->collective == collective && algorithm->name == name) return algorithm;
  return nullptr;
}

}  // namespace ibcoll
