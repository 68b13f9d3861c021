// SPDX-License-Identifier: Apache-2.0
// A daemon's records of the file's lost writes, as part of a state: two bytes, interpreted by the product's
// own records (lost_writes.h). Each step loads such records from the bytes, queries them, and stores them
// again.
#pragma once
#include <cstdint>

namespace longhaul::model {

struct Book {
  std::uint8_t client = 0;  // whose loss: stands for an address. Zero: nothing is remembered
  std::uint8_t about = 0;   // the run of the near daemon that is suspected; zero: the loss is certain

  bool operator==(const Book&) const = default;

  void add(std::uint8_t of_client, std::uint8_t suspected);
  bool has(std::uint8_t of_client) const;  // an open that may write is to be told
  void known_to(std::uint8_t near_run, std::uint8_t of_client);
  void told(std::uint8_t of_client);
  void replaced(std::uint8_t of_client);
};

}  // namespace longhaul::model
