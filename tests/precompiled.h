// SPDX-License-Identifier: Apache-2.0
// The headers of most tests that take longest to compile, compiled once for all test programs;
// proxy/precompiled.h has more. Tests still include what they use.
#pragma once
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>
