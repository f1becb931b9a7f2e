# HTTP, the LLM client, prompts; against a server that misbehaves on purpose, and real ones.
pkg_check_modules(MHD REQUIRED IMPORTED_TARGET libmicrohttpd)
pkg_check_modules(GNUTLS REQUIRED IMPORTED_TARGET gnutls)
add_executable(llm_server fakes/llm_server.c)
target_link_libraries(llm_server PRIVATE fl_flags PkgConfig::MHD PkgConfig::GNUTLS Threads::Threads)

foreach(name sse http llm_reply llm_chat llm_record prompt llm_faults)
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/unit/test_${name}.c)
    fl_unit(${name} ROOMS base http llm)
    target_compile_definitions(test_${name} PRIVATE FL_LLM_SERVER="$<TARGET_FILE:llm_server>")
    add_dependencies(test_${name} llm_server)
  endif()
endforeach()
