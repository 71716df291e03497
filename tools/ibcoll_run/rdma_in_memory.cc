// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/rdma_in_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace ibcoll::run {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibrary = "libibcoll_rdma_in_memory.so";
constexpr std::string_view kPreload = "LD_PRELOAD=";

// "": it is in neither place.
std::string library() {
  std::error_code ignored;
  const fs::path bin = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const char* folder : {IBCOLL_LIB_FROM_BIN, "../lib"}) {
    const fs::path path = (bin / folder / kLibrary).lexically_normal();
    if (fs::exists(path, ignored)) return path;
  }
  return "";
}

// Before what the rank would load anyway.
std::string preload(const std::string& path, std::string_view others) {
  return fmt::format("{}{}{}{}", kPreload, path, others.empty() ? "" : ":", others);
}

}  // namespace

Status RdmaInMemory::open(std::vector<HostJob>& jobs) {
  if (std::any_of(jobs.begin(), jobs.end(), [](const HostJob& job) { return job.remote; }))
    return error(
        IBCOLL_ERR_INVALID_ARGUMENT,
        "--rdma-in-memory: the device is memory of this machine, and ranks would run on others; leave the hosts "
        "out (--host localhost where there is an allocation), or use their adapters with --net verbs");
  const std::string path = library();
  if (path.empty())
    return error(IBCOLL_ERR_UNSUPPORTED,
                 "--rdma-in-memory: there is no {} beside this program: install libibverbs-dev and librdmacm-dev "
                 "(tools/install_packages build), and build ibcoll anew",
                 kLibrary);
  file_ = UniqueFd(::memfd_create("rdma_in_memory", MFD_CLOEXEC));
  if (!file_)
    return error(
        IBCOLL_ERR_SYSTEM,
        "--rdma-in-memory: memfd_create: {}; the device needs a kernel with memory files, and a container that "
        "permits them",
        std::strerror(errno));
  const char* const loaded = std::getenv("LD_PRELOAD");
  for (HostJob& job : jobs) {
    job.environment.push_back(preload(path, loaded ? loaded : ""));
    job.environment.push_back(fmt::format("RDMA_IN_MEMORY=/proc/{}/fd/{}", ::getpid(), file_.get()));
    for (RankProgram& program : job.programs)
      for (std::string& entry : program.environment)
        if (entry.starts_with(kPreload)) entry = preload(path, entry.substr(kPreload.size()));
  }
  return {};
}

}  // namespace ibcoll::run
