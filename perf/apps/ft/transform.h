// SPDX-License-Identifier: BSD-3-Clause
// Three-dimensional Fourier transform over all ranks: each has nz / p planes of x and y, transforms these, exchanges
// blocks with all others (alltoall) and has then ny / p planes of x and z.
#pragma once

#include <complex>
#include <vector>

#include "perf/apps/ft/problem.h"
#include "perf/apps/layer/job.h"

struct fftw_plan_s;

namespace ft {

using apps::Error;
using Complex = std::complex<double>;
using Grid = std::vector<Complex>;

class Transform {
 public:
  // The number of ranks divides ny and nz.
  Transform(apps::AppJob& job, const Problem& problem);
  ~Transform();
  Transform(const Transform&) = delete;
  Transform& operator=(const Transform&) = delete;

  // From [z of this rank][y][x], which is used up, to [z][y of this rank][x].
  Error forward(Grid& in, Grid& out);
  // The way back, without a factor: both together multiply by nx ny nz.
  Error backward(Grid& in, Grid& out);
  int planes() const { return nz_ / job_.size(); }  // of x and y
  int rows() const { return ny_ / job_.size(); }    // of x and z
  size_t points() const { return static_cast<size_t>(nx_) * static_cast<size_t>(ny_) * static_cast<size_t>(planes()); }

 private:
  struct Plans {
    fftw_plan_s *x, *y, *z;
  };
  Plans make_plans(int sign);
  uint64_t block_bytes() const { return points() / static_cast<size_t>(job_.size()) * sizeof(Complex); }
  // Between [z][y][x] and [rank of y][z][y of that rank][x].
  void pack(const Grid& planes, Grid& blocks) const;
  void unpack(const Grid& blocks, Grid& planes) const;

  apps::AppJob& job_;
  int nx_, ny_, nz_;
  Grid scratch_;
  Plans forward_, backward_;
};

}  // namespace ft
