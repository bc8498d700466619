# Helpers that keep every folder's CMakeLists.txt to a few lines.
include(CheckCXXCompilerFlag)

add_library(fulgur_options INTERFACE)
target_include_directories(fulgur_options INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_options(fulgur_options INTERFACE -Wall -Wextra -Wconversion -Werror)
# GCC 12 sees an overlap in every `"text" + std::string` (its bug 105651).
target_compile_options(fulgur_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
# Contracting a*b+c differently per compiler or function would break "same tokens however computed".
target_compile_options(fulgur_options INTERFACE -ffp-contract=off)
target_link_libraries(fulgur_options INTERFACE Threads::Threads)

# fulgur_library(<folder> SOURCES <files...> [DEPS <targets...>])  ->  target fulgur_<folder>
function(fulgur_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(fulgur_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(fulgur_${name} PUBLIC fulgur_options ${ARG_DEPS})
endfunction()

# fulgur_test(<name> [SOURCES <files...>] [DEPS <targets...>] [LABELS <labels...>] [TIMEOUT <seconds>])
# A GoogleTest program from <name>.cc. No label: the fast set. "slow": needs PyPI, minutes, or both.
# "long": tens of minutes; run by hand.
# Tests run with the repository root as working directory, so fixtures have stable relative paths.
function(fulgur_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT ARG_SOURCES)
    set(ARG_SOURCES ${name}.cc)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE fulgur_options ${ARG_DEPS} GTest::gmock_main)
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}")
endfunction()

# fulgur_fuzz(<name> [DEPS <targets...>]): a libFuzzer program from <name>.cc, built only with FULGUR_FUZZ.
function(fulgur_fuzz name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  if(NOT FULGUR_FUZZ)
    return()
  endif()
  add_executable(${name} ${name}.cc)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_libraries(${name} PRIVATE fulgur_options ${ARG_DEPS})
endfunction()
