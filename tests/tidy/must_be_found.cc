// SPDX-License-Identifier: BSD-3-Clause
// clang-tidy has to report this source. No target compiles it.
namespace {

struct Ends {
  Ends() noexcept;
  ~Ends();
};

}  // namespace

Ends needs_a_destructor_at_exit;
