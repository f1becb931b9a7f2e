# The vector index: sources of the room (embed_sources, embed_external, embed_definitions are used
# by CMakeLists.txt), and the shared object with FAISS in it, loaded when an index is opened.
set(FL_FAISS "AUTO" CACHE STRING "FAISS for the vector index: AUTO (when it is there), ON or OFF")
set_property(CACHE FL_FAISS PROPERTY STRINGS AUTO ON OFF)

list(APPEND embed_sources exact.c index.c index_build.c index_load.c)
list(APPEND embed_external Threads::Threads ${CMAKE_DL_LIBS})
list(APPEND embed_definitions FL_INDEX_LIBDIR="${CMAKE_INSTALL_LIBDIR}"
  FL_INDEX_FULL_LIBDIR="${CMAKE_INSTALL_FULL_LIBDIR}")

if(NOT FL_FAISS STREQUAL "OFF")
  find_path(FL_FAISS_INCLUDE faiss/c_api/Index_c.h)
  find_library(FL_FAISS_LIB faiss)
  # What .ci/faiss.sh made of this very version; another's would be of other headers.
  set(version)
  if(FL_FAISS_INCLUDE)
    foreach(part MAJOR MINOR PATCH)
      file(STRINGS ${FL_FAISS_INCLUDE}/faiss/Index.h line REGEX "define FAISS_VERSION_${part} ")
      string(REGEX REPLACE "[^0-9]" "" line "${line}")
      list(APPEND version ${line})
    endforeach()
    list(JOIN version "." version)
  endif()
  if(NOT "${FL_FAISS_VERSION}" STREQUAL "${version}")
    unset(FL_FAISS_C_LIB CACHE)
  endif()
  set(FL_FAISS_VERSION "${version}" CACHE INTERNAL "Version of FAISS that was found")
  find_library(FL_FAISS_C_LIB faiss_c HINTS ${CMAKE_SOURCE_DIR}/build/faiss-c-${version})
  find_library(FL_BLAS_LIB openblas)
  find_library(FL_LAPACK_LIB lapack)
  set(wanted FL_FAISS_INCLUDE FL_FAISS_LIB FL_FAISS_C_LIB FL_BLAS_LIB)
  set(missing)
  foreach(item ${wanted})
    if(NOT ${item})
      list(APPEND missing ${item})
    endif()
  endforeach()
  if(missing AND FL_FAISS STREQUAL "ON")
    message(FATAL_ERROR "FAISS cannot be used, not found: ${missing}; "
      "run .ci/faiss.sh, or configure with -DFL_FAISS=OFF")
  elseif(missing)
    message(STATUS "No FAISS (not found: ${missing}): vectors are searched one by one")
  endif()
endif()

if(NOT FL_FAISS STREQUAL "OFF" AND NOT missing)
  # Its own flags: the sanitizers are for our code, and this is a table of calls into FAISS.
  add_library(fl_faiss MODULE index_faiss.c)
  set_target_properties(fl_faiss PROPERTIES PREFIX "" OUTPUT_NAME faultline-faiss SUFFIX ".so"
    C_VISIBILITY_PRESET hidden LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  target_include_directories(fl_faiss PRIVATE ${CMAKE_BINARY_DIR}/include/embed
    ${FL_FAISS_INCLUDE})
  target_compile_options(fl_faiss PRIVATE -Wall -Wextra -Wshadow -Wvla
    $<$<BOOL:${FL_WERROR}>:-Werror>)
  target_compile_definitions(fl_faiss PRIVATE _FILE_OFFSET_BITS=64 _DEFAULT_SOURCE)
  target_link_options(fl_faiss PRIVATE -Wl,--as-needed -Wl,--exclude-libs,ALL -Wl,-z,defs)
  # OpenBLAS holds LAPACK as well; where it was built without, LAPACK's own is taken.
  if(NOT FL_LAPACK_LIB)
    set(FL_LAPACK_LIB)
  endif()
  target_link_libraries(fl_faiss PRIVATE ${FL_FAISS_C_LIB} ${FL_FAISS_LIB} ${FL_BLAS_LIB}
    ${FL_LAPACK_LIB} gomp stdc++ m)
  install(TARGETS fl_faiss LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/faultline)
endif()
