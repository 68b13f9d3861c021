# cmake -D SOURCE=TREE -D NUMBER=0.1.0 -D FILE=version_text.h -P version.cmake, at every build: which build this is, as
# NUMBER+gitDATE.TIME.COMMIT, of the commit that the tree has. Date and time (UTC) come first, so that a later commit is a
# later version for apt. An exported tree has no history: `git archive` writes the same into cmake/commit.
# What is made depends on the commit and on whether tracked files differ from it (".dirty"), never on the clock, the
# directory or the host.
# A later commit compiles one small file and links the program; the file is left alone where it says the same.

# An exported tree comes first: what lies around it may be another repository.
file(READ ${SOURCE}/cmake/commit commit)
set(dirty)
if(commit MATCHES "Format:")
  set(commit)
  # Root builds in the trees of others: git's distrust of them protects from hooks, of which nothing here runs one.
  set(git git -c safe.directory=* -c core.fsmonitor=false -C ${SOURCE})
  execute_process(COMMAND ${git} rev-parse --show-cdup OUTPUT_VARIABLE up RESULT_VARIABLE failed
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT failed AND up STREQUAL "")  # else SOURCE is a part of another repository
    execute_process(COMMAND ${git} log -1 --no-show-signature "--format=%ct %H" OUTPUT_VARIABLE commit ERROR_QUIET)
    execute_process(COMMAND ${git} diff --quiet --no-ext-diff HEAD -- RESULT_VARIABLE differs OUTPUT_QUIET ERROR_QUIET)
    if(differs)
      set(dirty .dirty)
    endif()
  endif()
endif()

if(commit MATCHES "^([0-9]+) ([0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f])")
  set(hash ${CMAKE_MATCH_2})
  set(ENV{SOURCE_DATE_EPOCH} ${CMAKE_MATCH_1})  # the time that string(TIMESTAMP) prints
  string(TIMESTAMP time "%Y%m%d.%H%M%S" UTC)
  set(version ${NUMBER}+git${time}.${hash}${dirty})
else()
  set(version ${NUMBER}+unknown)
endif()

set(text "#define LONGHAUL_VERSION \"${version}\"\n")
set(before)
if(EXISTS ${FILE})
  file(READ ${FILE} before)
endif()
if(NOT text STREQUAL before)
  file(WRITE ${FILE} "${text}")
endif()
