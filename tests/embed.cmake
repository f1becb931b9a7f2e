fl_unit(tokens ROOMS base embed EXTERNAL Threads::Threads)
fl_unit(normal ROOMS base embed)
fl_unit(static ROOMS base embed EXTERNAL Threads::Threads)
fl_unit(embed_memory ROOMS base embed)

# Run by hand: embed_bench TOKENS TABLE FILE.
add_executable(embed_bench bench/embed_bench.c $<TARGET_OBJECTS:fl_embed> $<TARGET_OBJECTS:fl_base>)
foreach(room base embed)
  target_include_directories(embed_bench PRIVATE ${CMAKE_BINARY_DIR}/include/${room})
endforeach()
get_property(external GLOBAL PROPERTY FL_EXTERNAL)
target_link_libraries(embed_bench PRIVATE fl_flags ${external})
