// For helpers in headers of files with instruction-set flags: no copy of them can end up in code
// for other machines.
#pragma once

#define FULGUR_INLINE inline __attribute__((always_inline))
