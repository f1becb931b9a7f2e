# Options, warnings and sanitizers; and fl_room(), the one way to make a room's target.
include(GNUInstallDirs)
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

option(FL_TESTS "Build the tests" ON)
option(FL_VECTORSCAN "Scan with Vectorscan; without it PCRE2 does all the work" ON)
option(FL_WERROR "Warnings are errors" ON)
option(FL_FUZZ "Build fuzz targets with libFuzzer (clang)" OFF)
set(FL_SANITIZE "" CACHE STRING "Sanitizers, such as address,undefined or thread")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_CXX_STANDARD 17) # embed/spm.cpp, the border to SentencePiece
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_library(fl_flags INTERFACE)
target_compile_options(fl_flags INTERFACE -Wall -Wextra -Wshadow -Wpointer-arith -Wvla
  -Wformat=2 $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes> $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>)
target_compile_definitions(fl_flags INTERFACE _FILE_OFFSET_BITS=64 _DEFAULT_SOURCE)
if(FL_WERROR)
  target_compile_options(fl_flags INTERFACE -Werror)
endif()
if(FL_SANITIZE)
  target_compile_options(fl_flags INTERFACE -fsanitize=${FL_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(fl_flags INTERFACE -fsanitize=${FL_SANITIZE})
endif()
if(FL_FUZZ)
  target_compile_options(fl_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# fl_room(NAME SOURCES a.c b.c USES base match EXTERNAL PkgConfig::HS)
# Each room is an object library. It sees its own headers as "NAME/x.h" and those of the rooms in
# USES, and nothing else: include folders are not passed on, so a wrong include does not compile.
function(fl_room name)
  cmake_parse_arguments(R "" "" "SOURCES;USES;EXTERNAL" ${ARGN})
  add_library(fl_${name} OBJECT ${R_SOURCES})
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/include/${name})
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_BINARY_DIR}/include/${name}/${name}
    SYMBOLIC)
  target_include_directories(fl_${name} PRIVATE ${CMAKE_BINARY_DIR}/include/${name})
  foreach(other ${R_USES})
    target_include_directories(fl_${name} PRIVATE ${CMAKE_BINARY_DIR}/include/${other})
  endforeach()
  target_link_libraries(fl_${name} PRIVATE fl_flags ${R_EXTERNAL})
  set_property(GLOBAL APPEND PROPERTY FL_ROOMS fl_${name})
  set_property(GLOBAL APPEND PROPERTY FL_EXTERNAL ${R_EXTERNAL})
endfunction()
