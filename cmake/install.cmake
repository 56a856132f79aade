# Installs headers, library and command line, and what CMake and pkg-config users need to link them.
include(CMakePackageConfigHelpers)

# Public headers are what lies between the kernels and the tools.
install(
  DIRECTORY engine ops optim models
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/tritgrad"
  FILES_MATCHING
  PATTERN "*.h"
  PATTERN "*-inl.h" EXCLUDE
  PATTERN "ops/kernels" EXCLUDE
  PATTERN "embedded.h" EXCLUDE)
install(TARGETS tritgrad EXPORT tritgradTargets DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(TARGETS tritgrad_c LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(FILES tools/c/tritgrad.h DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(TARGETS tritgrad_cli DESTINATION "${CMAKE_INSTALL_BINDIR}")

# ---- find_package(tritgrad) ----------------------------------------------------------------------
set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/tritgrad")
install(EXPORT tritgradTargets NAMESPACE tritgrad:: DESTINATION "${package_folder}")
configure_package_config_file(cmake/tritgradConfig.cmake.in
                              "${PROJECT_BINARY_DIR}/cmake/tritgradConfig.cmake"
                              INSTALL_DESTINATION "${package_folder}")
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/cmake/tritgradConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/cmake/tritgradConfig.cmake"
              "${PROJECT_BINARY_DIR}/cmake/tritgradConfigVersion.cmake"
        DESTINATION "${package_folder}")

# ---- pkg-config tritgrad -------------------------------------------------------------------------
# GCC finds its own run-time by itself; LLVM's lies in a folder of its own.
set(pc_openmp "")
foreach(name IN LISTS OpenMP_CXX_LIB_NAMES)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    cmake_path(GET OpenMP_${name}_LIBRARY PARENT_PATH folder)
    string(APPEND pc_openmp " -L${folder}")
  endif()
  string(APPEND pc_openmp " -l${name}")
endforeach()
set(pc_onednn "")
if(TRITGRAD_WITH_ONEDNN)
  set(pc_onednn " -ldnnl")
endif()
set(pc_mpi "")
if(TRITGRAD_WITH_MPI)
  string(REPLACE ";" " " pc_mpi " ${MPI_C_LIBRARIES}")
endif()
# Relative to the .pc file, so that the tree may be installed or moved anywhere.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_INCLUDEDIR BASE_DIRECTORY
           "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" OUTPUT_VARIABLE pc_include_folder)
foreach(package IN ITEMS tritgrad tritgrad-c)
  configure_file(cmake/${package}.pc.in "${PROJECT_BINARY_DIR}/cmake/${package}.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/cmake/${package}.pc"
          DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endforeach()
