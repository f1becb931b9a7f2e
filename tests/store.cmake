# The incident memory. The fault tests give SQLite an allocator and a file system of their own.
fl_unit(store ROOMS base store)
fl_unit(store_search ROOMS base store)
fl_unit(incident_yaml ROOMS base store)

function(fl_store_fault name)
  add_executable(fault_${name} fault/test_${name}.c)
  foreach(room base store)
    target_include_directories(fault_${name} PRIVATE ${CMAKE_BINARY_DIR}/include/${room})
    target_sources(fault_${name} PRIVATE $<TARGET_OBJECTS:fl_${room}>)
  endforeach()
  get_property(external GLOBAL PROPERTY FL_EXTERNAL)
  target_link_libraries(fault_${name} PRIVATE fl_flags PkgConfig::CMOCKA ${external})
  add_test(NAME fault.${name} COMMAND fault_${name})
endfunction()
fl_store_fault(store)
fl_store_fault(store_limits)

# Not a test: bench_store N prints how long things take with N incidents.
add_executable(bench_store EXCLUDE_FROM_ALL bench/store.c $<TARGET_OBJECTS:fl_base>
  $<TARGET_OBJECTS:fl_store>)
target_include_directories(bench_store PRIVATE ${CMAKE_BINARY_DIR}/include/base
  ${CMAKE_BINARY_DIR}/include/store)
get_property(external GLOBAL PROPERTY FL_EXTERNAL)
target_link_libraries(bench_store PRIVATE fl_flags ${external})
