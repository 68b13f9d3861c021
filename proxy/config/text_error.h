// SPDX-License-Identifier: Apache-2.0
// The error of the small parsers in this folder: why a text was not accepted. The caller adds the place (file
// and line, command line, API).
#pragma once
#include <boost/assert/source_location.hpp>
#include <boost/system/result.hpp>
#include <stdexcept>
#include <string>

namespace longhaul::config {

struct TextError {
  std::string message;
};

// Called by `result.value()` on an error; found by argument-dependent look-up.
[[noreturn]] inline void throw_exception_from_error(const TextError& error, const boost::source_location&) {
  throw std::invalid_argument(error.message);
}

template <class T>
using TextResult = boost::system::result<T, TextError>;

}  // namespace longhaul::config
