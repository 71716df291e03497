// SPDX-License-Identifier: BSD-3-Clause
// The benchmark FT: solves a diffusion equation by a three-dimensional Fourier transform forth and, in each iteration,
// back. Source: D. Bailey et al., "The NAS Parallel Benchmarks", NASA report RNR-94-007, 1994, kernel FT.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <numbers>

#include "perf/apps/ft/problem.h"
#include "perf/apps/ft/transform.h"
#include "perf/apps/layer/program.h"
#include "perf/apps/layer/random_numbers.h"

namespace ft {
namespace {

constexpr uint64_t kSeed = 314159265;
constexpr double kAlpha = 1e-6;
constexpr double kTolerance = 1e-12;  // relative, of a checksum

class Ft final : public apps::Application {
 public:
  const char* about() const override {
    return "Benchmark FT: a three-dimensional Fourier transform by alltoall; compares with the published checksums";
  }
  void add_options(CLI::App& options) override {
    options.add_option("--class", class_, "size: S (64 x 64 x 64), W (128 x 128 x 32) or A (256 x 256 x 128)")
        ->check(CLI::IsMember({"S", "W", "A"}))
        ->capture_default_str();
  }
  std::string title() const override {
    return fmt::format("FT class {}: {} x {} x {}, {} iterations, checksums as published", class_, problem_->nx,
                       problem_->ny, problem_->nz, kIterations);
  }
  bool run(apps::AppJob& job) override {
    problem_ = std::find_if(std::begin(kProblems), std::end(kProblems),
                            [&](const Problem& one) { return one.name == class_[0]; });
    if (problem_->ny % job.size() != 0 || problem_->nz % job.size() != 0) {
      return job.agree(fmt::format("class {} on {} ranks: the number of ranks must divide {} and {}; start another one",
                                   class_, job.size(), problem_->ny, problem_->nz));
    }
    Error error;
    try {
      error = solve(job);
    } catch (const std::bad_alloc&) {
      error = "no memory; take a smaller class or more hosts";
    }
    if (!job.agree(error)) return false;
    return job.agree(job.rank() == 0 ? verify() : Error());
  }

 private:
  Error solve(apps::AppJob& job) {
    Transform transform(job, *problem_);
    Grid state(transform.points()), wave(transform.points()), work(transform.points());
    start(transform, job.rank(), state);
    const std::vector<double> decay = factors(transform, job.rank());
    Error error = job.begin();
    if (error.empty()) error = transform.forward(state, wave);
    for (int i = 0; i < kIterations && error.empty(); ++i) {
      for (size_t k = 0; k < wave.size(); ++k) work[k] = wave[k] *= decay[k];
      error = transform.backward(work, state);
      if (error.empty()) error = add_up(job, transform, state, sums_[i]);
    }
    job.end();
    return error;
  }

  // Random numbers, x first, the real part before the imaginary one.
  void start(const Transform& transform, int rank, Grid& state) const {
    apps::RandomNumbers random(kSeed);
    random.skip(2 * transform.points() * static_cast<uint64_t>(rank));
    for (Complex& one : state) {
      const double real = random.next();
      one = {real, random.next()};
    }
  }

  // exp(-4 alpha pi^2 k^2) of each wave vector of this rank, as it lies after the transform.
  std::vector<double> factors(const Transform& transform, int rank) const {
    const auto squared = [](int i, int n) { return std::pow(i < n / 2 ? i : i - n, 2); };
    std::vector<double> decay;
    decay.reserve(transform.points());
    for (int z = 0; z < problem_->nz; ++z)
      for (int y = 0; y < transform.rows(); ++y)
        for (int x = 0; x < problem_->nx; ++x) {
          const double k2 =
              squared(x, problem_->nx) + squared(rank * transform.rows() + y, problem_->ny) + squared(z, problem_->nz);
          decay.push_back(std::exp(-4 * kAlpha * std::numbers::pi * std::numbers::pi * k2));
        }
    return decay;
  }

  // The checksum of one iteration, at rank 0: 1,024 points of the grid.
  Error add_up(apps::AppJob& job, const Transform& transform, const Grid& state, Complex& sum) const {
    Complex own = 0;
    for (int j = 1; j <= 1024; ++j) {
      const int x = j % problem_->nx, y = 3 * j % problem_->ny, z = 5 * j % problem_->nz;
      if (z / transform.planes() != job.rank()) continue;
      own += state[static_cast<size_t>((z % transform.planes() * problem_->ny + y) * problem_->nx + x)];
    }
    own /= static_cast<double>(transform.points()) * job.size();
    return job.sum_to_0(reinterpret_cast<const double*>(&own), reinterpret_cast<double*>(&sum), 2);
  }

  Error verify() const {
    for (int i = 0; i < kIterations; ++i) {
      const Complex wanted = problem_->checksums[i];
      const auto far = [](double a, double b) { return !(std::abs((a - b) / b) <= kTolerance); };
      if (far(sums_[i].real(), wanted.real()) || far(sums_[i].imag(), wanted.imag())) {
        return fmt::format(
            "class {}, iteration {}: the checksum is {:.12e} {:+.12e} i, published is {:.12e} {:+.12e} i", class_,
            i + 1, sums_[i].real(), sums_[i].imag(), wanted.real(), wanted.imag());
      }
    }
    return {};
  }

  std::string class_ = "S";
  const Problem* problem_ = nullptr;
  Complex sums_[kIterations] = {};
};

}  // namespace
}  // namespace ft

int main(int argc, char** argv) {
  ft::Ft application;
  return apps::run_application(application, argc, argv);
}
