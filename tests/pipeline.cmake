# Tests of the whole pipeline, from files to the answer.
foreach(name principles)
  fl_unit(${name} ROOMS base read match rules diagnose)
  target_include_directories(test_${name} PRIVATE ${CMAKE_SOURCE_DIR}/engine/include)
endforeach()
