# Everything from the system's packages (tools/scripts/setup.sh names them); nothing is downloaded.
include(GNUInstallDirs)
find_package(PkgConfig REQUIRED)

find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(ZLIB REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(tomlplusplus 3.3 REQUIRED)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash>=0.8)
# (Its CMake package of Debian 12 insists on tools that lie in other packages.)
pkg_check_modules(libzip REQUIRED IMPORTED_TARGET libzip>=1.7)
find_path(UTF8CPP_INCLUDE_DIR utf8cpp/utf8.h REQUIRED)
# Messages of ONNX, whose CMake package of Debian 12 names files that are not in it, and protobuf's run-time, which
# reads tokenizers too. (Debian's libsentencepiece brings another protobuf along, and cannot be linked beside it.)
pkg_check_modules(protobuf REQUIRED IMPORTED_TARGET protobuf>=3.21)
find_path(ONNX_INCLUDE_DIR onnx/onnx-ml.pb.h REQUIRED)
find_library(ONNX_PROTO_LIBRARY onnx_proto REQUIRED)
mark_as_advanced(ONNX_INCLUDE_DIR ONNX_PROTO_LIBRARY)

# The kernels. xsimd's package accepts no other major version than the one that is asked for, so none is.
if(NOT TRITGRAD_PORTABLE)
  find_package(xsimd REQUIRED)
  if(xsimd_VERSION VERSION_LESS 8.1)
    message(FATAL_ERROR "found xsimd ${xsimd_VERSION}, expected 8.1 or newer; install a newer libxsimd-dev")
  endif()
endif()

# Dense products, where oneDNN is installed, else by Eigen. oneDNN's own CMake package insists on headers
# of OpenCL, which the C interface does not need and Debian's package does not bring along. Its threads
# must be OpenMP's (or none): those the engine can hold back.
set(TRITGRAD_WITH_ONEDNN OFF)
if(TRITGRAD_ONEDNN AND NOT TRITGRAD_PORTABLE)
  find_path(ONEDNN_INCLUDE_DIR oneapi/dnnl/dnnl_config.h)
  find_library(ONEDNN_LIBRARY dnnl)
  mark_as_advanced(ONEDNN_INCLUDE_DIR ONEDNN_LIBRARY)
  if(ONEDNN_INCLUDE_DIR AND ONEDNN_LIBRARY)
    file(STRINGS "${ONEDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_config.h" onednn_threads
         REGEX "define DNNL_CPU_THREADING_RUNTIME +DNNL_RUNTIME_(OMP|SEQ)")
    if(onednn_threads)
      set(TRITGRAD_WITH_ONEDNN ON)
    endif()
  endif()
endif()
if(TRITGRAD_WITH_ONEDNN)
  message(STATUS "Dense products: oneDNN (${ONEDNN_LIBRARY})")
else()
  message(STATUS "Dense products: Eigen")
endif()

# Several processes, where MPI is installed. Its C interface is all that is used, from C++.
set(TRITGRAD_WITH_MPI OFF)
if(TRITGRAD_MPI)
  enable_language(C)
  find_package(MPI QUIET COMPONENTS C)
  set(TRITGRAD_WITH_MPI ${MPI_C_FOUND})
endif()
if(TRITGRAD_WITH_MPI)
  message(STATUS "Ranks: MPI (${MPI_C_LIBRARIES})")
else()
  message(STATUS "Ranks: this process alone")
endif()

# The command line
find_package(CLI11 2.1 REQUIRED)
find_package(fmt 9 REQUIRED)
find_package(PNG 1.6 REQUIRED)

# The tests
if(TRITGRAD_TESTS)
  find_package(doctest 2.4.9 REQUIRED)
endif()
