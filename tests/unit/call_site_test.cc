// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/trace/call_site.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace ibcoll {
namespace {

TEST(CallSite, FilesOfMpisAreKnownByName) {
  for (const char* path :
       {"/usr/lib/libmpi.so.40", "libmpi_mpifh.so.40", "libmpi_usempif08.so.40", "/opt/x/libmpich.so.12",
        "libmpichfort.so.12", "libmpifort.so.12", "libopen-pal.so.40", "/usr/lib/openmpi/mca_coll_han.so",
        "/lib/ibcoll/openmpi/mca_coll_ibcoll.so", "libibcoll.so.0", "libibcoll_pmpi_mpich.so"})
    EXPECT_TRUE(serves_mpi(path)) << path;
  // The program itself has no name in the list of loaded files.
  for (const char* path : {"", "/home/me/mpi", "/usr/lib/libmpi/program", "/opt/libmpi.so.40/lib/libscalapack.so",
                           "libmpiP.so", "libm.so.6", "ibcoll_perf", "/opt/mca_x/libhdf5.so"})
    EXPECT_FALSE(serves_mpi(path)) << path;
}

TEST(CallSite, ACallByTheProgramIsItself) {
  const void* const here = __builtin_return_address(0);
  EXPECT_EQ(program_call_site(here), here);
}

TEST(CallSite, APlaceIsOneOfItsFile) {
  const CodeLocation c = location_of(reinterpret_cast<const void*>(&std::ldiv));
  EXPECT_NE(c.module.find("/libc.so"), std::string::npos) << c.module;
  EXPECT_TRUE(c.symbol.ends_with("+0x0")) << c.symbol;
  const CodeLocation own = location_of(reinterpret_cast<const void*>(&serves_mpi));
  EXPECT_EQ(own.module, std::filesystem::read_symlink("/proc/self/exe"));
  EXPECT_EQ(own.build_id.find_first_not_of("0123456789abcdef"), std::string::npos) << own.build_id;
  EXPECT_GE(own.build_id.size(), 16u) << own.build_id;
  const CodeLocation next = location_of(reinterpret_cast<const char*>(&serves_mpi) + 5);
  EXPECT_EQ(next.offset, own.offset + 5);
}

TEST(CallSite, WhatIsNoCodeHasNoPlace) {
  const int here = 0;
  const CodeLocation place = location_of(&here);
  EXPECT_EQ(place.module + place.build_id + place.symbol, "");
  EXPECT_EQ(place.offset, 0u);
}

}  // namespace
}  // namespace ibcoll
