fl_unit(metrics ROOMS ${FL_PIPELINE})
target_include_directories(test_metrics PRIVATE ${CMAKE_SOURCE_DIR}/engine/include)
