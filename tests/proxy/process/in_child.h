// SPDX-License-Identifier: Apache-2.0
// Runs something that a process cannot take back in a child, and gives how the child ended.
#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

namespace longhaul::process {

struct ChildEnd {
  int code = -1;    // what `act` returned
  int signal = -1;  // or what killed it
};

template <class Act>
ChildEnd in_child(Act act) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) ::_exit(act());
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  if (WIFSIGNALED(status)) return {-1, WTERMSIG(status)};
  return {WEXITSTATUS(status), -1};
}

}  // namespace longhaul::process
