# Fuzz targets: tests/fuzz/fuzz_NAME.c with its seeds in tests/fuzz/seeds/NAME/. In the fuzz preset
# they run under libFuzzer and share FL_FUZZ_SECONDS; elsewhere they replay their seeds.
set(FL_FUZZ_SECONDS 60 CACHE STRING "Seconds of libFuzzer over all targets together")

set(fuzz_rooms_prefix base read)
set(fuzz_rooms_reader base read)
set(fuzz_rooms_rules base match rules)
set(fuzz_rooms_traceback base read match rules diagnose)

set(fuzz_targets)
foreach(name prefix reader rules traceback)
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/fuzz_${name}.c)
    list(APPEND fuzz_targets ${name})
  endif()
endforeach()
list(LENGTH fuzz_targets fuzz_count)
if(fuzz_count)
  math(EXPR fuzz_each "${FL_FUZZ_SECONDS} / ${fuzz_count}")
endif()

foreach(name ${fuzz_targets})
  set(seeds ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/seeds/${name})
  add_executable(fuzz_${name} fuzz/fuzz_${name}.c)
  get_property(external GLOBAL PROPERTY FL_EXTERNAL)
  foreach(room ${fuzz_rooms_${name}})
    target_include_directories(fuzz_${name} PRIVATE ${CMAKE_BINARY_DIR}/include/${room})
    target_sources(fuzz_${name} PRIVATE $<TARGET_OBJECTS:fl_${room}>)
  endforeach()
  target_include_directories(fuzz_${name} PRIVATE ${CMAKE_SOURCE_DIR}/engine/include)
  # libFuzzer's entry has no prototype of ours, and a target may use libc as it likes.
  target_compile_options(fuzz_${name} PRIVATE -Wno-missing-prototypes)
  target_link_libraries(fuzz_${name} PRIVATE fl_flags ${external} Threads::Threads)
  if(FL_FUZZ)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz/${name})
    add_test(NAME fuzz.${name} COMMAND fuzz_${name} -max_total_time=${fuzz_each} -timeout=10
      -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1
      -artifact_prefix=${CMAKE_BINARY_DIR}/fuzz/${name}- ${CMAKE_BINARY_DIR}/fuzz/${name} ${seeds})
  else()
    target_sources(fuzz_${name} PRIVATE fuzz/standalone.c)
    add_test(NAME seeds.${name} COMMAND fuzz_${name} ${seeds})
  endif()
endforeach()
