// SPDX-License-Identifier: Apache-2.0
// A daemon's records of the file's lost writes, as part of a state: two bytes for each of its names,
// interpreted by the product's own records (lost_writes.h). Each step loads such records from the bytes,
// queries them, and stores them again.
#pragma once
#include <array>
#include <cstdint>

namespace longhaul::model {

constexpr std::uint8_t kNames = 2;  // which the file has before and after its rename

struct Book {
  std::array<std::uint8_t, kNames>
      client{};  // whose loss: stands for an address. Zero: nothing is remembered
  std::array<std::uint8_t, kNames>
      about{};  // the run of the near daemon that is suspected; zero: it is certain

  bool operator==(const Book&) const = default;

  void add(std::uint8_t of_client, std::uint8_t suspected, std::uint8_t name);
  bool has(std::uint8_t of_client, std::uint8_t name) const;  // an open that may write is to be told
  bool has_any(std::uint8_t of_client) const;
  void known_to(std::uint8_t near_run, std::uint8_t of_client, std::uint8_t name);
  void told(std::uint8_t of_client, std::uint8_t name);
  void replaced(std::uint8_t of_client, std::uint8_t name);
  void moved(std::uint8_t of_client);  // from the first name to the second
};

}  // namespace longhaul::model
