# ThreadSanitizer does not see how OpenMP's own run-time synchronises, and would report every parallel
# loop. Archer, a plug-in of LLVM's OpenMP, tells it; only instrumented code is watched.
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  message(FATAL_ERROR "TRITGRAD_SANITIZE=thread needs clang and LLVM's OpenMP with Archer, found "
                      "${CMAKE_CXX_COMPILER_ID}; use cmake --preset tsan")
endif()
cmake_path(GET OpenMP_omp_LIBRARY PARENT_PATH openmp_folder)
file(REAL_PATH "${OpenMP_omp_LIBRARY}" openmp_library)
cmake_path(GET openmp_library PARENT_PATH real_openmp_folder)
find_library(ARCHER archer HINTS "${openmp_folder}" "${real_openmp_folder}" REQUIRED)
list(APPEND environment "OMP_TOOL_LIBRARIES=${ARCHER}"
     "TSAN_OPTIONS=ignore_noninstrumented_modules=1:halt_on_error=1:second_deadlock_stack=1"
     OMP_NUM_THREADS=4)
target_compile_definitions(tritgrad_tests PRIVATE TRITGRAD_THREAD_SANITIZED)
