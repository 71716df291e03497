# SPDX-License-Identifier: BSD-3-Clause
"""The coll component of Open MPI, and ibcoll_mpi."""

from .fault import OPEN_MPI, Fault

COMPONENT, TOOL = "runtime/under_mpi/openmpi/", "tools/ibcoll_mpi/"

FAULTS = [
    Fault("communicator_not_kept_in_flight", COMPONENT + "request.cc",
          "  OBJ_RETAIN(module.comm);", "",
          OPEN_MPI, "OpenMpisOwn"),
    Fault("open_mpis_own_reductions_in_ibcoll", COMPONENT + "request.cc",
          "  if (maybe_open_mpis_own(call)) {", "  if (false && maybe_open_mpis_own(call)) {",
          OPEN_MPI, "OpenMpisOwn.test_many_in_flight_beside_idup"),
    Fault("closes_what_did_not_open", COMPONENT + "component.cc",
          "  if (!opened) return OPAL_SUCCESS;\n", "",
          OPEN_MPI, "Parameters.test_priority"),
    Fault("collectives_inside_of_mpi_init", COMPONENT + "forms.h",
          "if (mpi_is_running() && !InsideOpenMpi::now()) {", "if (!InsideOpenMpi::now()) {",
          OPEN_MPI, "OpenMpisOwn.test_jobs_of_spawned_processes"),
    Fault("every_type_has_an_envelope", COMPONENT + "route.cc",
          "return type->args != nullptr || ompi_datatype_is_predefined(type);", "return type != nullptr;",
          OPEN_MPI, "Shared.test_kinds_of_communicators"),
    Fault("component_for_any_open_mpi", COMPONENT + "component.cc",
          " == kBuiltFor) return true;", ".size() > 1) return true;",
          OPEN_MPI, "OtherInstallations.test_another_open_mpi_does_not_load_it"),
    Fault("component_presumed_everywhere", COMPONENT + "presence.cc",
          "    if (!has_component(world, rank)) {", "    if (rank < 0 && !has_component(world, rank)) {",
          OPEN_MPI, "OtherInstallations.test_a_rank_without_the_component"),
    Fault("verbose_parameter_not_used", COMPONENT + "parameters.cc",
          "  if (values.verbose >= 0) settings.verbose = values.verbose;\n", "",
          OPEN_MPI, "Parameters.test_verbose"),
    Fault("persistent_requests_complete_once", COMPONENT + "request.cc",
          "    request->req_complete = REQUEST_PENDING;\n", "",
          OPEN_MPI, "OpenMpisOwn.test_every_form_of_every_collective"),
    Fault("job_not_ended", COMPONENT + "lifetime.cc",
          "  if (world != nullptr) under_mpi::end_job(world->communicator());\n", "",
          OPEN_MPI, "OpenMpisOwn.test_every_form_of_every_collective"),
    Fault("exports_for_the_first_program_only", TOOL + "command.cc",
          "    if (i > 0 && command.words[i] != \":\") continue;", "    if (i > 0) continue;",
          OPEN_MPI, "Lines.test_a_trace_and_settings_reach_the_ranks"),
    Fault("any_launcher_for_any_program", TOOL + "detect.cc",
          "    found.launcher = Launcher::kHydra;\n    found.of_launcher = Mpi::kMpich;\n",
          "    found.launcher = Launcher::kHydra;\n",
          OPEN_MPI, "Refusals.test_launcher_and_program_of_different_mpis"),
]
