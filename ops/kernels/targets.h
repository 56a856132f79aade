// The names that the objects of ops/kernels/ offer each other; everybody else uses engine/kernels/.
#pragma once

#include <atomic>
#include <span>

#include "engine/kernels/attention.h"
#include "engine/kernels/codecs.h"
#include "engine/kernels/kernels.h"
#include "engine/kernels/layers.h"
#include "engine/kernels/peak_loops.h"
#include "engine/kernels/products.h"
#include "engine/kernels/reductions.h"
#include "engine/kernels/updates.h"

namespace tritgrad {

// Eigen and the peak loops for the instruction set that every x86-64 processor has.
namespace baseline {
void gemm(const GemmShape& shape, const float* a, std::int64_t lda, const float* b,
          std::int64_t ldb, float* c, std::int64_t ldc);
extern const PeakLoops kPeakLoops;
}  // namespace baseline

namespace reference {
extern const KernelTables kKernels;
// Writes bytes [begin, end) of n packed trits; `trits` and `packed` point to element 0 and byte 0,
// because the place of an element depends on n.
void encode_trit_bytes(std::uint8_t* packed, const std::int8_t* trits, std::int64_t n,
                       std::int64_t begin, std::int64_t end);
}  // namespace reference

#ifndef TRITGRAD_PORTABLE
namespace avx2 {
extern const KernelTables kKernels;
}
namespace avx512 {
extern const KernelTables kKernels;
}
namespace avx512vnni {
extern const KernelTables kKernels;
}
namespace avx512vbmi {
extern const KernelTables kKernels;
}
namespace avx512amx {
extern const KernelTables kKernels;
}
#endif

// Returns the best of `supported` (in rising order, the reference first) that is not above
// `requested`, which is the value of TRITGRAD_ISA or nullptr when it is not set. Throws Error for
// an unknown name. It is apart from the processor and the environment, so that it can be tested.
const KernelTables& choose_kernels(std::span<const KernelTables* const> supported,
                                   const char* requested);

// Whether sixteen look-ups in a small table take fewer cycles than a quotient of vectors and what
// surrounds it, which instruction sets do not tell: taken to be so on Intel's processors from
// Sapphire Rapids on, and nowhere else. Tests set it.
std::atomic<bool>& gathers_quickly();

}  // namespace tritgrad
