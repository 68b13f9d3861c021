// SPDX-License-Identifier: Apache-2.0
// What takes longest to read of what the tests of the proxy need, compiled once. Tests still include what
// they use.
#pragma once
#include "../../precompiled.h"
#include "../precompiled.h"
