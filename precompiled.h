// SPDX-License-Identifier: Apache-2.0
// The heavy headers that most of proxy/ and tools/ need, compiled once. Sources still include what they use.
#pragma once
#include <boost/asio.hpp>
#include <boost/json.hpp>
#include <boost/system/result.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>
