// SPDX-License-Identifier: Apache-2.0
// The headers of the proxy's tests that take longest to compile, compiled once. Tests still include what they
// use.
#pragma once
#include "../../precompiled.h"
#include "../precompiled.h"
