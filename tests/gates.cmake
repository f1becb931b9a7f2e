# Tests of the tree rather than of the program: once, in the dev preset, is enough.
option(FL_GATES "Test style, headers and installation" OFF)
if(FL_GATES)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  find_program(FL_CXX NAMES c++ g++ clang++ REQUIRED)
  add_test(NAME gate.style COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/style.py)
  add_test(NAME gate.corpus COMMAND ${Python3_EXECUTABLE}
    ${CMAKE_CURRENT_SOURCE_DIR}/corpus_sources.py)
  add_test(NAME gate.headers COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/headers/run.sh
    ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR} ${CMAKE_C_COMPILER} ${FL_CXX})
  if(TARGET diagnose)
    add_test(NAME gate.readme COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/readme.py
      $<TARGET_FILE:diagnose>)
    set_tests_properties(gate.readme PROPERTIES ENVIRONMENT
      "XDG_CACHE_HOME=${CMAKE_CURRENT_BINARY_DIR}/cli-cache")
    add_test(NAME gate.sample COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/samples/make.py
      --compare)
  endif()
  add_test(NAME gate.healthy COMMAND ${Python3_EXECUTABLE}
    ${CMAKE_SOURCE_DIR}/corpus/healthy/make.py --compare)
  if(EXISTS ${CMAKE_SOURCE_DIR}/engine/install.cmake)
    add_test(NAME gate.install COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/install/run.sh
      ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR} ${CMAKE_C_COMPILER})
  endif()
endif()
