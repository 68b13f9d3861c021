// SPDX-License-Identifier: Apache-2.0
#include <chrono>

std::chrono::steady_clock::time_point deadline() {
  return std::chrono::steady_clock::now() + std::chrono::seconds(1);
}
