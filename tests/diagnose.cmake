fl_unit(metrics ROOMS base read match compress store http llm rules redact embed diagnose)
target_include_directories(test_metrics PRIVATE ${CMAKE_SOURCE_DIR}/engine/include)
