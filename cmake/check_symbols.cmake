# cmake -D NM=nm -D LIBRARY=libx.a [-D ABOVE=namespaces] -P check_symbols.cmake: fails if the library reads a clock, uses files,
# sockets or logs, or has a symbol with anything of longhaul's namespaces ABOVE in its name.
execute_process(COMMAND ${NM} --undefined-only --format=posix ${LIBRARY} OUTPUT_VARIABLE lines RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "${NM} cannot read ${LIBRARY}")
endif()
string(REGEX MATCHALL "\n[A-Za-z_][A-Za-z0-9_.]* U" symbols "${lines}")
list(REMOVE_DUPLICATES symbols)

set(forbidden
  # clocks
  "_ZNSt6chrono3_V21.(steady|system)_clock3nowEv" "clock_.*" "gettimeofday" "timespec_get" "time" "clock" "(u|nano)?sleep"
  # files
  "(f|fd|fre)?open(at)?(64)?" "creat(64)?" "p?(read|write)v?(64)?" "(unlink|rename|mkdir)(at)?" "(f|l)?stat(at)?(64)?" "(open|read)dir"
  "f(data)?sync" "_ZNSt10filesystem.*" "_ZNSt1[34]basic_(filebuf|.fstream).*"
  # sockets
  "socket" "connect" "bind" "listen" "accept4?" "(send|recv)(to|from|m?msg)?" "[gs]etsockopt" "poll" "select" "epoll_.*" "ioctl" "getaddrinfo"
  # the layers above
  "_ZNK?8longhaul(5flows|7control|7process)[0-9].*"
  # logs and terminals
  "_ZNK?[0-9]*6spdlog.*" "_ZN8longhaul3log.*" "syslog" "v?f?printf" "f?puts")
set(found)
foreach(pattern ${forbidden})
  set(matching ${symbols})
  list(FILTER matching INCLUDE REGEX "^\n${pattern} U$")
  list(APPEND found ${matching})
endforeach()
if(found)
  list(TRANSFORM found REPLACE "\n| U" "")
  list(JOIN found ", " found)
  file(REMOVE ${LIBRARY})  # so that the next build does not take it for finished
  message(FATAL_ERROR "${LIBRARY} is a library without input and output, but uses: ${found}. Pass time in as an argument; files, "
                      "sockets and logs belong to the code that uses the library.")
endif()

foreach(name ${ABOVE})
  execute_process(COMMAND ${NM} --format=posix ${LIBRARY} OUTPUT_VARIABLE lines)
  string(LENGTH ${name} length)
  string(REGEX MATCH "[A-Za-z0-9_]*8longhaul${length}${name}[A-Za-z0-9_]*" found "${lines}")
  if(found)
    file(REMOVE ${LIBRARY})
    message(FATAL_ERROR "${LIBRARY} is a library below longhaul::${name}, but names it: ${found}")
  endif()
endforeach()
