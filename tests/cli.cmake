# The command line: each folder of tests/cli is a case, see tests/cli/run.
if(TARGET diagnose)
  file(GLOB cases CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/cli/*/cmd)
  foreach(file ${cases})
    get_filename_component(folder ${file} DIRECTORY)
    get_filename_component(name ${folder} NAME)
    if(name STREQUAL "config-cache-folder" AND NOT FL_VECTORSCAN)
      continue() # PCRE2 alone keeps no cache
    endif()
    if(name STREQUAL "reindex" AND NOT TARGET fl_faiss)
      continue() # an index cannot be made
    endif()
    add_test(NAME cli.${name} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/cli/run $<TARGET_FILE:diagnose>
      ${folder})
    set_tests_properties(cli.${name} PROPERTIES ENVIRONMENT
      "FL_SOURCE_DIR=${CMAKE_SOURCE_DIR};FL_CLI_CACHE=${CMAKE_CURRENT_BINARY_DIR}/cli-cache")
  endforeach()

  fl_unit(out_text ROOMS ${FL_PIPELINE} cli EXTERNAL PkgConfig::LIBEDIT)
  target_include_directories(test_out_text PRIVATE ${CMAKE_SOURCE_DIR}/engine/include
    ${CMAKE_SOURCE_DIR}/engine/cli)
endif()
