# SPDX-License-Identifier: BSD-3-Clause
# What `cmake --install` puts where. Read last, when every target is known.
#   include/ibcoll.h (and ibcoll_mpi_bootstrap.h), lib/libibcoll.so and its modules beside it, lib/ibcoll/openmpi/mca_coll_ibcoll.so,
#   bin/ibcoll_*, pkg-config and CMake files
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ibcoll)
file(RELATIVE_PATH lib_from_bin /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
file(RELATIVE_PATH prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)

install(TARGETS ibcoll EXPORT ibcollTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${PROJECT_SOURCE_DIR}/runtime/include/ibcoll.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

get_property(network_modules GLOBAL PROPERTY IBCOLL_NETWORK_MODULES)
foreach(module ${network_modules} ibcoll_pmix ibcoll_trace_module ibcoll_rdma_in_memory ibcoll_mpi_bootstrap_openmpi ibcoll_mpi_bootstrap_mpich ibcoll_pmpi_openmpi
               ibcoll_pmpi_mpich)
  if(TARGET ${module})
    install(TARGETS ${module} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
    set_property(TARGET ${module} APPEND PROPERTY INSTALL_RPATH "$ORIGIN")
    list(APPEND installed ${module})
  endif()
endforeach()
# No library to link, so not beside them: Open MPI looks for its components in folders.
if(TARGET mca_coll_ibcoll)
  install(TARGETS mca_coll_ibcoll LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/ibcoll/openmpi)
  list(APPEND installed mca_coll_ibcoll)
  set_property(TARGET mca_coll_ibcoll APPEND PROPERTY INSTALL_RPATH "$ORIGIN/../..")
endif()
if(TARGET ibcoll_mpi_bootstrap_openmpi OR TARGET ibcoll_mpi_bootstrap_mpich)
  install(FILES ${PROJECT_SOURCE_DIR}/bootstrap/mpi/ibcoll_mpi_bootstrap.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endif()

foreach(program ibcoll_run ibcoll_info ibcoll_mpi ibcoll_perf ibcoll_sim ibcoll_trace ibcoll_tune)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    set_property(TARGET ${program} APPEND PROPERTY INSTALL_RPATH "$ORIGIN/${lib_from_bin}")
    list(APPEND installed ${program})
    install(FILES ${PROJECT_SOURCE_DIR}/tools/completions/ibcoll RENAME ${program}
            DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  endif()
endforeach()
# All that is installed, and no more.
add_custom_target(ibcoll_installed DEPENDS ibcoll ${installed})

install(EXPORT ibcollTargets NAMESPACE ibcoll:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/runtime/api/ibcollConfig.cmake.in ${PROJECT_BINARY_DIR}/ibcollConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ibcollConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ibcollConfig.cmake ${PROJECT_BINARY_DIR}/ibcollConfigVersion.cmake
        DESTINATION ${package_dir})

configure_file(${PROJECT_SOURCE_DIR}/runtime/api/ibcoll.pc.in ${PROJECT_BINARY_DIR}/ibcoll.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/ibcoll.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
