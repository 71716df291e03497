// SPDX-License-Identifier: BSD-3-Clause
#include "perf/apps/ft/transform.h"

#include <fftw3.h>

#include <algorithm>

namespace ft {
namespace {

fftw_complex* raw(Grid& grid) { return reinterpret_cast<fftw_complex*>(grid.data()); }

// `n` points that are `stride` apart, for all of two further dimensions.
fftw_plan plan(Grid& grid, int n, int stride, fftw_iodim second, fftw_iodim third, int sign) {
  const fftw_iodim one{n, stride, stride};
  const fftw_iodim all[] = {third, second};
  // ESTIMATE: the same plan in every run and over every library. Vectors of the program need not be aligned as FFTW's.
  return fftw_plan_guru_dft(1, &one, 2, all, raw(grid), raw(grid), sign, FFTW_ESTIMATE | FFTW_UNALIGNED);
}

void run(fftw_plan plan, Grid& grid) { fftw_execute_dft(plan, raw(grid), raw(grid)); }

}  // namespace

Transform::Transform(apps::AppJob& job, const Problem& problem)
    : job_(job),
      nx_(problem.nx),
      ny_(problem.ny),
      nz_(problem.nz),
      scratch_(points()),
      forward_(make_plans(FFTW_FORWARD)),
      backward_(make_plans(FFTW_BACKWARD)) {}

Transform::~Transform() {
  for (const Plans& plans : {forward_, backward_})
    for (fftw_plan_s* one : {plans.x, plans.y, plans.z}) fftw_destroy_plan(one);
}

Transform::Plans Transform::make_plans(int sign) {
  const int plane = nx_ * ny_, slab = nx_ * rows();
  return {plan(scratch_, nx_, 1, {ny_, nx_, nx_}, {planes(), plane, plane}, sign),
          plan(scratch_, ny_, nx_, {nx_, 1, 1}, {planes(), plane, plane}, sign),
          plan(scratch_, nz_, slab, {nx_, 1, 1}, {rows(), nx_, nx_}, sign)};
}

Error Transform::forward(Grid& in, Grid& out) {
  run(forward_.x, in);
  run(forward_.y, in);
  pack(in, scratch_);
  Error error = job_.alltoall(scratch_.data(), out.data(), block_bytes());
  if (error.empty()) run(forward_.z, out);
  return error;
}

Error Transform::backward(Grid& in, Grid& out) {
  run(backward_.z, in);
  Error error = job_.alltoall(in.data(), scratch_.data(), block_bytes());
  if (!error.empty()) return error;
  unpack(scratch_, out);
  run(backward_.y, out);
  run(backward_.x, out);
  return {};
}

void Transform::pack(const Grid& planes_of_all, Grid& blocks) const {
  const auto run = static_cast<size_t>(nx_ * rows());
  auto to = blocks.begin();
  for (int rank = 0; rank < job_.size(); ++rank)
    for (int z = 0; z < planes(); ++z)
      to = std::copy_n(planes_of_all.begin() + static_cast<ptrdiff_t>(run) * (z * job_.size() + rank), run, to);
}

void Transform::unpack(const Grid& blocks, Grid& planes_of_all) const {
  const auto run = static_cast<size_t>(nx_ * rows());
  auto from = blocks.begin();
  for (int rank = 0; rank < job_.size(); ++rank)
    for (int z = 0; z < planes(); ++z, from += static_cast<ptrdiff_t>(run))
      std::copy_n(from, run, planes_of_all.begin() + static_cast<ptrdiff_t>(run) * (z * job_.size() + rank));
}

}  // namespace ft
