# Tests of the whole pipeline, from files to the answer. They share a cache of compiled patterns.
foreach(name aside principles traceback cases recognise engines facts limits page)
  fl_unit(${name} ROOMS ${FL_PIPELINE})
  target_include_directories(test_${name} PRIVATE ${CMAKE_SOURCE_DIR}/engine/include)
  target_compile_definitions(test_${name} PRIVATE
    FL_TEST_CACHE="${CMAKE_CURRENT_BINARY_DIR}/pattern-cache")
endforeach()

# The shipped rules on their own examples and on the healthy cases.
if(TARGET diagnose)
  add_test(NAME rules.shipped COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/rules/run.sh
    $<TARGET_FILE:diagnose> ${CMAKE_CURRENT_SOURCE_DIR}/cases)
endif()

if(TARGET diagnose)
  add_test(NAME rules.healthy COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/rules/healthy.sh
    $<TARGET_FILE:diagnose> ${CMAKE_SOURCE_DIR}/corpus/healthy)
endif()

# What goes wrong around the program: tests/fault/test_NAME.c.
function(fl_fault name)
  add_executable(fault_${name} fault/test_${name}.c)
  get_property(external GLOBAL PROPERTY FL_EXTERNAL)
  foreach(room ${FL_PIPELINE})
    target_include_directories(fault_${name} PRIVATE ${CMAKE_BINARY_DIR}/include/${room})
    target_sources(fault_${name} PRIVATE $<TARGET_OBJECTS:fl_${room}>)
  endforeach()
  target_include_directories(fault_${name} PRIVATE ${CMAKE_SOURCE_DIR}/engine/include)
  target_compile_definitions(fault_${name} PRIVATE FL_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
    FL_TEST_DATA="${CMAKE_CURRENT_SOURCE_DIR}/data"
    FL_TEST_CACHE="${CMAKE_CURRENT_BINARY_DIR}/pattern-cache")
  target_link_libraries(fault_${name} PRIVATE fl_flags PkgConfig::CMOCKA ${external})
  add_test(NAME fault.${name} COMMAND fault_${name})
endfunction()
fl_fault(alloc)
fl_fault(io)
target_link_options(fault_io PRIVATE -Wl,--wrap=read)
if(TARGET diagnose)
  add_test(NAME fault.cli COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/fault/cli.sh $<TARGET_FILE:diagnose>)
  set_tests_properties(fault.cli PROPERTIES ENVIRONMENT
    "FL_CLI_CACHE=${CMAKE_CURRENT_BINARY_DIR}/cli-cache")
endif()
if(FL_SANITIZE)
  target_compile_definitions(test_page PRIVATE FL_FEWER)
endif()
