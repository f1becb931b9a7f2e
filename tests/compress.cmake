# Folding and the choice of lines under a budget.
fl_unit(shape ROOMS base compress)
fl_unit(shapes ROOMS base compress)
fl_unit(digest ROOMS base compress embed EXTERNAL Threads::Threads)

# The decisive line of each labelled job is on its page: once, in the dev preset, is enough.
if(FL_GATES AND TARGET diagnose)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  add_test(NAME compress.quality COMMAND ${Python3_EXECUTABLE}
    ${CMAKE_CURRENT_SOURCE_DIR}/compress/quality.py $<TARGET_FILE:diagnose>
    ${CMAKE_CURRENT_SOURCE_DIR}/cases --floors ${CMAKE_CURRENT_SOURCE_DIR}/data/digest-floor.txt)
  set_tests_properties(compress.quality PROPERTIES PROCESSORS 2 ENVIRONMENT
    "XDG_CACHE_HOME=${CMAKE_CURRENT_BINARY_DIR}/cli-cache")
endif()
