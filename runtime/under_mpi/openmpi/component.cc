// SPDX-License-Identifier: BSD-3-Clause
// mca_coll_ibcoll.so: Open MPI's collectives by ibcoll.
#include "runtime/under_mpi/openmpi/component.h"

#include <cstdio>
#include <cstring>
#include <string>

#include "runtime/under_mpi/core/job.h"
#include "runtime/under_mpi/openmpi/lifetime.h"
#include "runtime/under_mpi/openmpi/module.h"
#include "runtime/under_mpi/openmpi/parameters.h"
#include "runtime/under_mpi/openmpi/presence.h"
#include "runtime/under_mpi/openmpi/request.h"
#include "runtime/under_mpi/openmpi/route.h"

namespace ibcoll::open_mpi {
namespace {

constexpr const char kBuiltFor[] = "v" OMPI_VERSION;

// A component reads Open MPI's internal structures, which no version promises to keep.
bool built_for_this_open_mpi() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);  // "Open MPI v4.1.4, package: ..."
  const std::string running(text);
  const size_t begin = running.find(" v");
  if (begin != std::string::npos && running.substr(begin + 1, running.find(',') - begin - 1) == kBuiltFor) return true;
  std::fprintf(
      stderr,
      "ibcoll: not loaded: mca_coll_ibcoll.so was built for Open MPI %s, and this is %s; build ibcoll with the "
      "headers of this one\n",
      kBuiltFor, text);
  return false;
}

int watch_progress() { return opal_progress_register(under_mpi::progress); }

bool opened = false;

int open() {
  const under_mpi::Settings settings = settings_with_parameters();
  // Other ranks then see that this one lacks the component.
  if (!settings.on || priority() < 0 || !built_for_this_open_mpi()) return OPAL_ERR_NOT_AVAILABLE;
  for (const auto step : {open_requests, watch_lifetime, watch_progress, announce})
    if (const int status = step(); status != OPAL_SUCCESS) return status;
  under_mpi::use_settings(settings);
  install_route();
  opened = true;
  return OPAL_SUCCESS;
}

// Open MPI calls it also where open() has refused.
int close() {
  if (!opened) return OPAL_SUCCESS;
  opened = false;
  opal_progress_unregister(under_mpi::progress);
  unwatch_lifetime();
  return close_requests();
}

int init_query(bool, bool) { return OPAL_SUCCESS; }

mca_coll_base_component_t describe() {
  mca_coll_base_component_t component{};
  component.collm_version = {
      IBCOLL_COLL_VERSION,
      .mca_component_name = "ibcoll",
      MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION),
      .mca_open_component = open,
      .mca_close_component = close,
      .mca_query_component = nullptr,
      .mca_register_component_params = register_parameters,
      .mca_component_flags = 0,
      .reserved = {}};
  component.collm_init_query = init_query;
  component.collm_comm_query = query;
  return component;
}

}  // namespace
}  // namespace ibcoll::open_mpi

mca_coll_base_component_t mca_coll_ibcoll_component = ibcoll::open_mpi::describe();
