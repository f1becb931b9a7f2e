# The bench measures on demand (tests/bench/run). What its numbers rest on is tested always.
pkg_check_modules(BENCH_PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
add_executable(naive_pcre2 bench/naive_pcre2.c)
target_link_libraries(naive_pcre2 PRIVATE fl_flags PkgConfig::BENCH_PCRE2)
if(TARGET diagnose)
  add_test(NAME bench.generated COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/bench/check.py
    $<TARGET_FILE:diagnose> $<TARGET_FILE:naive_pcre2>)
  set_tests_properties(bench.generated PROPERTIES ENVIRONMENT
    "XDG_CACHE_HOME=${CMAKE_CURRENT_BINARY_DIR}/cli-cache")
endif()
