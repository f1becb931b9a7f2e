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
