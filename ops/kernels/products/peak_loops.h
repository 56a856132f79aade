// The peak loops that the objects of ops/kernels/ offer; everybody else uses
// engine/kernels/peak_loops.h.
#pragma once

#include "engine/kernels/peak_loops.h"

namespace tritgrad {

namespace baseline {
extern const PeakLoops kPeakLoops;
}
#ifndef TRITGRAD_PORTABLE
namespace avx2 {
extern const PeakLoops kPeakLoops;
}
namespace avx512 {
extern const PeakLoops kPeakLoops;
}
namespace avx512vnni {
extern const PeakLoops kPeakLoops;
}
namespace avx512vbmi {
extern const PeakLoops kPeakLoops;
}
namespace avx512amx {
extern const PeakLoops kPeakLoops;
}
namespace avx512bf16 {
extern const PeakLoop kPeakLoop;
}
#endif

}  // namespace tritgrad
