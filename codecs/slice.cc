// SPDX-License-Identifier: Apache-2.0
#include "codecs/slice.h"
