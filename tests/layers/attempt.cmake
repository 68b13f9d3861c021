# Builds SOURCE as a library without input and output and below the SMB module is built, and expects RESULT: "built" or
# "refused".
set(object ${SCRATCH}.o)
set(library ${SCRATCH}.a)
list(TRANSFORM INCLUDES PREPEND -I)
execute_process(COMMAND ${CXX} -std=c++20 ${INCLUDES} -DBOOST_ASIO_SEPARATE_COMPILATION -c ${SOURCE} -o ${object} RESULT_VARIABLE failed ERROR_VARIABLE said)
if(NOT failed)
  file(REMOVE ${library})
  execute_process(COMMAND ${AR} qc ${library} ${object} COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CMAKE_COMMAND} -D NM=${NM} -D LIBRARY=${library} -D ABOVE=smb -P ${CMAKE_CURRENT_LIST_DIR}/../../cmake/check_symbols.cmake
                  RESULT_VARIABLE failed ERROR_VARIABLE said)
endif()
# Refused for another reason than ours, such as a header that is missing, proves nothing.
string(REGEX REPLACE "[ \n]+" " " said "${said}")
if(RESULT STREQUAL refused AND NOT said MATCHES "this library does|is a library without input and output|is a library below")
  message(FATAL_ERROR "${SOURCE} was not refused for what it uses: ${said}")
elseif(RESULT STREQUAL built AND failed)
  message(FATAL_ERROR "${SOURCE}: ${said}")
endif()
