# Tests of the whole pipeline, from files to the answer. They share a cache of compiled patterns.
foreach(name principles traceback cases recognise engines)
  fl_unit(${name} ROOMS base read match rules diagnose)
  target_include_directories(test_${name} PRIVATE ${CMAKE_SOURCE_DIR}/engine/include)
  target_compile_definitions(test_${name} PRIVATE
    FL_TEST_CACHE="${CMAKE_CURRENT_BINARY_DIR}/pattern-cache")
endforeach()

# The shipped rules on their own examples and on the healthy cases.
if(TARGET diagnose)
  add_test(NAME rules.shipped COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/rules/run.sh
    $<TARGET_FILE:diagnose> ${CMAKE_CURRENT_SOURCE_DIR}/cases)
endif()
