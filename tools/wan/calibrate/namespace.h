// SPDX-License-Identifier: Apache-2.0
// A network namespace without a name, and programs run inside it. Nothing needs to be cleaned up: the kernel
// removes the namespace and its interfaces when this process has ended, however it ended.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "tools/wan/descriptor.h"

namespace longhaul::wan {

class Namespace {
 public:
  Namespace();
  int descriptor() const { return descriptor_.get(); }
  std::string path() const;  // for `ip link … netns PATH`, while this object lives

 private:
  Descriptor descriptor_;
};

// While it lives, this thread is inside: sockets it opens stay there.
class Inside {
 public:
  explicit Inside(const Namespace& where);
  ~Inside();
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  Descriptor outside_;
};

// A program inside a namespace; it ends with this object, and with this process.
class Program {
 public:
  Program(const Namespace& where, const std::vector<std::string>& words);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Reads both its outputs until this text has appeared. Throws std::runtime_error with what it said if it
  // ended first or if it takes longer than `patience`.
  void await_text(const std::string& text, std::chrono::milliseconds patience);
  // All it has written on standard output until it ends. Throws if it fails, or takes longer than `patience`.
  std::string finish(std::chrono::milliseconds patience);
  void signal(int number) const;
  pid_t pid() const { return pid_; }

 private:
  bool read_more(std::chrono::steady_clock::time_point deadline);
  [[noreturn]] void fail(const std::string& what) const;

  std::string command_;
  pid_t pid_ = -1;
  Descriptor out_;
  Descriptor err_;
  std::string out_text_;
  std::string err_text_;
};

// Runs a short program to its end.
std::string run_inside(const Namespace& where, const std::vector<std::string>& words);

}  // namespace longhaul::wan
