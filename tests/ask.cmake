# Asking a language model, through the program: endpoints that misbehave, logs that give orders,
# secrets, recordings, and the score with a model. See tests/ask/lab.py.
if(TARGET diagnose)
  set(slow 1)
  if(FL_SANITIZE)
    set(slow 8)
  endif()
  file(GLOB scripts CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/ask/*.py)
  foreach(script ${scripts})
    get_filename_component(name ${script} NAME_WE)
    if(name STREQUAL "lab" OR name STREQUAL "real")
      continue()
    endif()
    add_test(NAME ask.${name} COMMAND python3 -B ${script} $<TARGET_FILE:diagnose>
      $<TARGET_FILE:llm_server>)
    set_tests_properties(ask.${name} PROPERTIES TIMEOUT 900 ENVIRONMENT
      "FL_CLI_CACHE=${CMAKE_CURRENT_BINARY_DIR}/cli-cache;FL_SLOW=${slow}")
  endforeach()
  if(FL_GATES)
    add_test(NAME real.ask COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/real/run.sh
      ${CMAKE_SOURCE_DIR}/build/real ${CMAKE_CURRENT_SOURCE_DIR}/ask/real.py)
    set_tests_properties(real.ask PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 1200 RUN_SERIAL ON
      ENVIRONMENT
      "FL_DIAGNOSE=$<TARGET_FILE:diagnose>;FL_CLI_CACHE=${CMAKE_CURRENT_BINARY_DIR}/cli-cache")
  endif()
endif()

# What may ground a claim; and memory that runs out while a model is asked.
foreach(name ask ask_alloc remote_alloc)
  fl_unit(${name} ROOMS ${FL_PIPELINE})
  target_include_directories(test_${name} PRIVATE ${CMAKE_SOURCE_DIR}/engine/include)
  target_compile_definitions(test_${name} PRIVATE FL_LLM_SERVER="${CMAKE_CURRENT_BINARY_DIR}/llm_server"
    FL_TEST_CACHE="${CMAKE_CURRENT_BINARY_DIR}/pattern-cache")
endforeach()
if(TARGET llm_server)
  add_dependencies(test_ask_alloc llm_server)
  add_dependencies(test_remote_alloc llm_server)
endif()
