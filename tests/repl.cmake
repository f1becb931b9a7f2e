# The REPL through a pseudo-terminal. Piped commands are cases of tests/cli (repl-*).
if(TARGET diagnose AND TARGET llm_server)
  find_package(Python3 COMPONENTS Interpreter REQUIRED)
  add_test(NAME repl.terminal COMMAND ${Python3_EXECUTABLE}
    ${CMAKE_CURRENT_SOURCE_DIR}/repl/terminal.py $<TARGET_FILE:diagnose> $<TARGET_FILE:llm_server>
    ${CMAKE_SOURCE_DIR}/samples/gpu-lost)
  set_tests_properties(repl.terminal PROPERTIES TIMEOUT 300 ENVIRONMENT
    "FL_CLI_CACHE=${CMAKE_CURRENT_BINARY_DIR}/cli-cache")
endif()
