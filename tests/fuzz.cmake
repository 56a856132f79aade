# One fuzzer per tests/fuzz/fuzz_<parser>.cpp (LLVMFuzzerTestOneInput). `ctest --preset fuzz` feeds each of
# them a million inputs, or as many as it takes in 50 minutes (fuzz_c and fuzz_exports, which train and write
# files, take fewer); those labelled smoke run for 9 seconds, a minute in all. tools/test.sh says how many inputs
# they were. None may crash, take a second (where it trains, ten), or allocate 64 MiB in one piece. They begin
# from what fuzz/seeds.sh makes when the build is configured.
file(GLOB sources CONFIGURE_DEPENDS fuzz/fuzz_*.cpp)
foreach(source IN LISTS sources)
  cmake_path(GET source STEM subject)
  add_executable(${subject} ${source})
  target_link_options(${subject} PRIVATE -fsanitize=fuzzer)
  if(subject STREQUAL "fuzz_c")
    set(timeout 10)
    target_include_directories(${subject} PRIVATE "${PROJECT_SOURCE_DIR}")
    target_link_libraries(${subject} PRIVATE tritgrad_c tritgrad_warnings)
  else()
    set(timeout 1)
    target_link_libraries(${subject} PRIVATE tritgrad_tools tritgrad tritgrad_warnings)
  endif()
  set(seeds "${CMAKE_CURRENT_BINARY_DIR}/seeds/${subject}")
  execute_process(COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/fuzz/seeds.sh" ${subject} "${seeds}"
                  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  set(limits -seed=1 -max_len=65536 -timeout=${timeout} -malloc_limit_mb=64 -print_final_stats=1)
  add_test(NAME ${subject} COMMAND ${subject} -runs=1000000 -max_total_time=3000 ${limits} "${seeds}"
           WORKING_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}")
  add_test(NAME smoke_${subject} COMMAND ${subject} -max_total_time=9 ${limits} "${seeds}"
           WORKING_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}")
  set_tests_properties(${subject} PROPERTIES LABELS fuzz TIMEOUT 3600)
  set_tests_properties(smoke_${subject} PROPERTIES LABELS smoke TIMEOUT 300)
endforeach()
