# Libraries without input and output: bytes and points in time go in, bytes and deadlines come out. What such a library
# must not use fails to build: headers of cmake/pure/ stand before the real ones and end in #error, and what has no header
# of its own (clocks, files, sockets) is found among the symbols that the finished library asks for.
# BELOW namespaces: the library knows nothing of what is in these.
function(longhaul_pure target)
  cmake_parse_arguments(PARSE_ARGV 1 option "" "" BELOW)
  target_include_directories(${target} BEFORE PRIVATE ${CMAKE_SOURCE_DIR}/cmake/pure)
  add_custom_command(TARGET ${target} POST_BUILD
    COMMAND ${CMAKE_COMMAND} -D NM=${CMAKE_NM} -D LIBRARY=$<TARGET_FILE:${target}>
            "-DABOVE=${option_BELOW}" -P ${CMAKE_SOURCE_DIR}/cmake/check_symbols.cmake
    VERBATIM)
endfunction()

# The sources of libraries, with their folders: for what compiles them another way or leaves them to those libraries.
function(longhaul_sources result)
  set(all)
  foreach(target ${ARGN})
    get_target_property(sources ${target} SOURCES)
    get_target_property(folder ${target} SOURCE_DIR)
    foreach(source ${sources})
      get_filename_component(source ${source} ABSOLUTE BASE_DIR ${folder})
      list(APPEND all ${source})
    endforeach()
  endforeach()
  set(${result} ${all} PARENT_SCOPE)
endfunction()
