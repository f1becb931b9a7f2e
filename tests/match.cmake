fl_unit(match ROOMS base match EXTERNAL Threads::Threads)
if(FL_VECTORSCAN)
  target_compile_definitions(test_match PRIVATE FL_HAVE_VECTORSCAN)
endif()
