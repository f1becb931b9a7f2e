# The memory of past incidents as a whole: store, embedding, index and search together.
foreach(name memory memory_index healthy)
  fl_unit(${name} ROOMS ${FL_PIPELINE})
  target_include_directories(test_${name} PRIVATE ${CMAKE_SOURCE_DIR}/engine/include)
  target_compile_definitions(test_${name} PRIVATE
    FL_TEST_CACHE="${CMAKE_CURRENT_BINARY_DIR}/pattern-cache")
  set_tests_properties(unit.${name} PROPERTIES ENVIRONMENT "FAULTLINE_DATA=${CMAKE_SOURCE_DIR}")
  if(TARGET fl_faiss)
    target_compile_definitions(test_${name} PRIVATE FL_HAVE_FAISS)
    add_dependencies(test_${name} fl_faiss)
  endif()
endforeach()

# What happens to it from outside, through the program.
if(TARGET diagnose)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  add_test(NAME fault.memory COMMAND ${Python3_EXECUTABLE}
    ${CMAKE_CURRENT_SOURCE_DIR}/fault/memory.py $<TARGET_FILE:diagnose>)
  set_tests_properties(fault.memory PROPERTIES TIMEOUT 1500 ENVIRONMENT
    "FL_CLI_CACHE=${CMAKE_CURRENT_BINARY_DIR}/cli-cache")
endif()

# Ten readers and two writers in one home.
add_executable(fault_crowd fault/test_crowd.c)
foreach(room ${FL_PIPELINE})
  target_include_directories(fault_crowd PRIVATE ${CMAKE_BINARY_DIR}/include/${room})
  target_sources(fault_crowd PRIVATE $<TARGET_OBJECTS:fl_${room}>)
endforeach()
get_property(external GLOBAL PROPERTY FL_EXTERNAL)
target_include_directories(fault_crowd PRIVATE ${CMAKE_SOURCE_DIR}/engine/include)
target_compile_definitions(fault_crowd PRIVATE FL_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
  FL_TEST_DATA="${CMAKE_CURRENT_SOURCE_DIR}/data"
  FL_TEST_CACHE="${CMAKE_CURRENT_BINARY_DIR}/pattern-cache")
target_link_libraries(fault_crowd PRIVATE fl_flags PkgConfig::CMOCKA ${external})
add_test(NAME fault.crowd COMMAND fault_crowd)
set_tests_properties(fault.crowd PROPERTIES ENVIRONMENT "FAULTLINE_DATA=${CMAKE_SOURCE_DIR}")
if(TARGET fl_faiss)
  target_compile_definitions(fault_crowd PRIVATE FL_HAVE_FAISS)
  add_dependencies(fault_crowd fl_faiss)
endif()

# Not a test: bench_memory N FOLDER prints how long things take with N incidents.
add_executable(bench_memory EXCLUDE_FROM_ALL bench/memory.c)
foreach(room ${FL_PIPELINE})
  target_include_directories(bench_memory PRIVATE ${CMAKE_BINARY_DIR}/include/${room})
  target_sources(bench_memory PRIVATE $<TARGET_OBJECTS:fl_${room}>)
endforeach()
target_include_directories(bench_memory PRIVATE ${CMAKE_SOURCE_DIR}/engine/include)
target_compile_definitions(bench_memory PRIVATE FL_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
  FL_TEST_CACHE="${CMAKE_CURRENT_BINARY_DIR}/pattern-cache")
target_link_libraries(bench_memory PRIVATE fl_flags PkgConfig::CMOCKA ${external})
