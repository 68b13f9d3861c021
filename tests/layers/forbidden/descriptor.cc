// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

int get() { return open("file", O_RDONLY); }
