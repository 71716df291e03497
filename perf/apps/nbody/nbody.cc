// SPDX-License-Identifier: BSD-3-Clause
// N bodies that attract each other, each pair directly; in each step an allgather of all positions. The energy must
// stay what it was. Sources: S. Aarseth, M. Henon, R. Wielen, "A Comparison of Numerical Methods for the Study of Star
// Cluster Dynamics", Astronomy and Astrophysics 37, 1974 (Plummer's model to start with); leapfrog: L. Verlet,
// Physical Review 159, 1967.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <numbers>
#include <vector>

#include "perf/apps/layer/program.h"
#include "perf/apps/layer/random_numbers.h"

namespace nbody {
namespace {

using apps::Error;
constexpr double kSoftening2 = 0.05 * 0.05;  // keeps close pairs from being flung out

struct Vector {
  double x = 0, y = 0, z = 0;
};
double square(const Vector& v) { return v.x * v.x + v.y * v.y + v.z * v.z; }
void add(Vector& to, double factor, const Vector& v) {
  to.x += factor * v.x, to.y += factor * v.y, to.z += factor * v.z;
}
Vector direction(apps::RandomNumbers& random, double length) {
  const double z = (1 - 2 * random.next()) * length, angle = 2 * std::numbers::pi * random.next();
  const double across = std::sqrt(length * length - z * z);
  return {across * std::cos(angle), across * std::sin(angle), z};
}

class NBody final : public apps::Application {
 public:
  const char* about() const override {
    return "Bodies under their own gravitation, one allgather of the positions in each step; checks the energy";
  }
  void add_options(CLI::App& options) override {
    options.add_option("--bodies", bodies_, "number of bodies")->check(CLI::Range(2, 1 << 20))->capture_default_str();
    options.add_option("--steps", steps_, "number of steps")->check(CLI::Range(1, 1 << 24))->capture_default_str();
    options.add_option("--dt", dt_, "time of one step; the system crosses itself in a time of about 3")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    options.add_option("--drift", most_drift_, "relative change of the energy that is an error")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
  }
  std::string title() const override {
    return fmt::format("N-BODY: {} bodies, {} steps of {}; energy {:.12f}, relative drift {:.1e}", bodies_, steps_, dt_,
                       energy_, drift_);
  }
  bool run(apps::AppJob& job) override {
    Error error;
    try {
      error = simulate(job);
    } catch (const std::bad_alloc&) {
      error = fmt::format("no memory for {} bodies; take fewer", bodies_);
    }
    if (!job.agree(error)) return false;
    if (job.rank() == 0 && !(drift_ <= most_drift_)) {
      error = fmt::format("the energy has drifted by {:.1e}, and --drift allows {:.1e}; take a smaller --dt", drift_,
                          most_drift_);
    }
    return job.agree(error);
  }

 private:
  Error simulate(apps::AppJob& job) {
    const int share = (bodies_ + job.size() - 1) / job.size();
    first_ = static_cast<size_t>(std::min(bodies_, share * job.rank()));
    const auto end = static_cast<size_t>(std::min(bodies_, share * (job.rank() + 1)));
    // Blocks of all ranks are equally long: the last ones may end with bodies without mass.
    all_.resize(static_cast<size_t>(share) * static_cast<size_t>(job.size()));
    start(end);
    const uint64_t bytes = static_cast<uint64_t>(share) * sizeof(Vector);
    own_.resize(static_cast<size_t>(share));
    accelerate();
    double before = 0;
    Error error = job.begin();
    if (error.empty()) error = add_energy(job, before);
    for (int step = 0; step < steps_ && error.empty(); ++step) {
      for (size_t i = 0; i < speed_.size(); ++i) {
        add(speed_[i], dt_ / 2, pull_[i]);
        add(own_[i], dt_, speed_[i]);
      }
      error = job.allgather(own_.data(), all_.data(), bytes);
      accelerate();
      for (size_t i = 0; i < speed_.size(); ++i) add(speed_[i], dt_ / 2, pull_[i]);
    }
    if (error.empty()) error = add_energy(job, energy_);
    job.end();
    drift_ = std::abs((energy_ - before) / before);
    return error;
  }

  // Plummer's model with a total mass of 1 and an energy of about -1/4; every rank makes all bodies.
  void start(size_t end) {
    const double scale = 3 * std::numbers::pi / 16;
    apps::RandomNumbers random(314159265);
    for (size_t i = 0; i < static_cast<size_t>(bodies_); ++i) {
      // The outermost hundredth, which reaches to infinity, is left out.
      const double radius = 1 / std::sqrt(std::pow(0.99 * random.next() + 1e-9, -2.0 / 3) - 1);
      all_[i] = direction(random, radius * scale);
      double q = 0, chance = 0;
      do {
        q = random.next(), chance = 0.1 * random.next();
      } while (chance > q * q * std::pow(1 - q * q, 3.5));
      const double fast = q * std::sqrt(2) * std::pow(1 + radius * radius, -0.25) / std::sqrt(scale);
      const Vector speed = direction(random, fast);
      if (i >= first_ && i < end) speed_.push_back(speed), own_.push_back(all_[i]);
    }
    pull_.resize(speed_.size());
  }

  void accelerate() {
    const auto count = static_cast<size_t>(bodies_);
    for (size_t i = 0; i < speed_.size(); ++i) {
      Vector sum;
      for (size_t j = 0; j < count; ++j) {
        const Vector way{all_[j].x - own_[i].x, all_[j].y - own_[i].y, all_[j].z - own_[i].z};
        const double inverse = 1 / std::sqrt(square(way) + kSoftening2);
        add(sum, inverse * inverse * inverse / bodies_, way);
      }
      pull_[i] = sum;
    }
  }

  // Adds the energy of the whole system, at rank 0. The positions of all are known.
  Error add_energy(apps::AppJob& job, double& energy) const {
    double own = 0;
    for (size_t i = 0; i < speed_.size(); ++i) {
      own += square(speed_[i]) / 2 / bodies_;
      for (size_t j = 0; j < static_cast<size_t>(bodies_); ++j) {
        const Vector way{all_[j].x - own_[i].x, all_[j].y - own_[i].y, all_[j].z - own_[i].z};
        if (j != first_ + i) own -= 0.5 / std::sqrt(square(way) + kSoftening2) / bodies_ / bodies_;
      }
    }
    return job.sum_to_0(&own, &energy, 1);
  }

  int bodies_ = 512, steps_ = 100;
  double dt_ = 0.005, most_drift_ = 1e-4;
  size_t first_ = 0;                        // of the bodies of this rank
  std::vector<Vector> all_;                 // positions
  std::vector<Vector> own_, speed_, pull_;  // of this rank's bodies
  double energy_ = 0, drift_ = 0;
};

}  // namespace
}  // namespace nbody

int main(int argc, char** argv) {
  nbody::NBody application;
  return apps::run_application(application, argc, argv);
}
