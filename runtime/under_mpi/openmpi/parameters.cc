// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/under_mpi/openmpi/parameters.h"

#include <algorithm>
#include <string>

#include "runtime/under_mpi/openmpi/component.h"

namespace ibcoll::open_mpi {
namespace {

// -1 and NULL: not given, so that the environment decides.
struct Values {
  int priority = 95;  // above all that Open MPI brings along; hcoll has 90
  char* collectives = nullptr;
  int verbose = -1;
};
Values values;

int add(const char* name, const char* about, mca_base_var_type_t type, void* storage) {
  return mca_base_component_var_register(&mca_coll_ibcoll_component.collm_version, name, about, type, nullptr, 0,
                                         static_cast<mca_base_var_flag_t>(0), OPAL_INFO_LVL_3,
                                         MCA_BASE_VAR_SCOPE_READONLY, storage);
}

}  // namespace

int register_parameters() {
  const int first =
      add("priority", "Priority of the component; below 0, it is not used", MCA_BASE_VAR_TYPE_INT, &values.priority);
  const int second = add("collectives",
                         "Collectives that ibcoll runs: 'all', 'allreduce,bcast', or '^alltoallw' for all but these "
                         "(default: IBCOLL_MPI_COLLECTIVES)",
                         MCA_BASE_VAR_TYPE_STRING, &values.collectives);
  const int third = add("verbose",
                        "0: errors; 1: also a line per collective at the end; 2: that from each rank (-1: "
                        "IBCOLL_MPI_VERBOSE)",
                        MCA_BASE_VAR_TYPE_INT, &values.verbose);
  for (const int index : {first, second, third})
    if (index < 0) return index;
  return OPAL_SUCCESS;
}

int priority() { return values.priority; }

under_mpi::Settings settings_with_parameters() {
  under_mpi::Settings settings = under_mpi::read_settings();
  if (values.verbose >= 0) settings.verbose = values.verbose;
  std::string why;
  if (values.collectives != nullptr && *values.collectives != '\0' &&
      !under_mpi::parse_collectives(values.collectives, &settings.collectives, &why) && settings.error.empty())
    settings.error = "coll_ibcoll_collectives" + why.substr(std::min(why.find('='), why.size()));  // not the variable
  return settings;
}

}  // namespace ibcoll::open_mpi
