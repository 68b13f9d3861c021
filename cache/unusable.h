// SPDX-License-Identifier: Apache-2.0
// Why a store cannot be opened: one sentence for the operator.
#pragma once
#include <stdexcept>

namespace longhaul::cache {

// The directory cannot be used at all.
class StoreUnusable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Another process uses the directory.
class StoreInUse : public StoreUnusable {
 public:
  using StoreUnusable::StoreUnusable;
};

}  // namespace longhaul::cache
