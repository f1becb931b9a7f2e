# What uses threads. Under the thread sanitizer these alone are worth their time, and CMakeLists.txt
# takes no other part.
fl_unit(crew ROOMS ${FL_PIPELINE} EXTERNAL PkgConfig::ZLIB
  Threads::Threads)
target_include_directories(test_crew PRIVATE ${CMAKE_SOURCE_DIR}/engine/include)
target_compile_definitions(test_crew PRIVATE
  FL_TEST_CACHE="${CMAKE_CURRENT_BINARY_DIR}/pattern-cache")
target_link_options(test_crew PRIVATE -Wl,--wrap=read -Wl,--wrap=pthread_create)
if(FL_SANITIZE STREQUAL "thread")
  fl_unit(engines ROOMS ${FL_PIPELINE})
  target_include_directories(test_engines PRIVATE ${CMAKE_SOURCE_DIR}/engine/include)
  target_compile_definitions(test_engines PRIVATE FL_FEWER
    FL_TEST_CACHE="${CMAKE_CURRENT_BINARY_DIR}/pattern-cache")
  target_compile_definitions(test_crew PRIVATE FL_FEWER)
  fl_unit(match ROOMS base match EXTERNAL Threads::Threads)
  if(FL_VECTORSCAN)
    target_compile_definitions(test_match PRIVATE FL_HAVE_VECTORSCAN)
  endif()
endif()
