# Everything from the system's packages (tools/setup.sh names them); nothing is downloaded.
include(GNUInstallDirs)
find_package(PkgConfig REQUIRED)

find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(ZLIB REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(tomlplusplus 3.3 REQUIRED)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash>=0.8)

# The kernels
if(NOT TRITGRAD_PORTABLE)
  find_package(xsimd 8.1 REQUIRED)
endif()

# The command line
find_package(CLI11 2.1 REQUIRED)
find_package(fmt 9 REQUIRED)

# The benchmarks, where Google Benchmark is installed
find_package(benchmark 1.7 QUIET)

# The tests
if(TRITGRAD_TESTS)
  find_package(doctest 2.4.9 REQUIRED)
endif()
