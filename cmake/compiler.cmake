# Flags of every target: ccache, floating point, warnings, sanitizers.

find_program(CCACHE ccache)
if(CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE}")
endif()

# Files take longer to read, with all that they include, than to compile: but for kernels, four as one take half
# the time. Their names do not meet (HACKING.md). Presets may say how many, or OFF.
if(NOT DEFINED CMAKE_UNITY_BUILD)
  set(CMAKE_UNITY_BUILD ON)
endif()
if(NOT DEFINED CMAKE_UNITY_BUILD_BATCH_SIZE)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 4)
endif()

# Kernels promise the same bits on every instruction set; a compiler that fuses a multiply and an add
# where the processor can would break that.
add_compile_options(-ffp-contract=off)

# Code that may lie anywhere is as fast as other code where nobody replaces its functions.
add_compile_options(-fno-semantic-interposition)

add_library(tritgrad_warnings INTERFACE)
target_compile_options(tritgrad_warnings
                       INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 takes every inlined std::string concatenation for an overlapping copy (GCC bug 105329).
  target_compile_options(tritgrad_warnings INTERFACE -Wno-restrict)
endif()

# A warning is an error with the compilers that the project is tested with. A newer compiler knows new
# warnings: whoever builds with it should see them, and not be stopped by them. With GCC sanitizers
# bring false ones; clang warns before it instruments, so its sanitizer builds hold all sources to them.
if(NOT DEFINED CMAKE_COMPILE_WARNING_AS_ERROR
   AND PROJECT_IS_TOP_LEVEL
   AND ((CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13
         AND NOT TRITGRAD_SANITIZE)
        OR (CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 15)))
  target_compile_options(tritgrad_warnings INTERFACE -Werror)
endif()

if(TRITGRAD_SANITIZE)
  add_compile_options(-fsanitize=${TRITGRAD_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TRITGRAD_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # False under sanitizers, as GCC's manual says; it complains about std::regex, among others.
    target_compile_options(tritgrad_warnings INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()
if(TRITGRAD_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "TRITGRAD_FUZZ needs clang for libFuzzer, found "
                        "${CMAKE_CXX_COMPILER_ID}; use cmake --preset fuzz")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
