// The seam between the engine and the instruction sets: tables of plain functions on raw pointers.
//
// Each subject has a table in a header of its own, with the contracts of its functions:
// products.h, codecs.h, updates.h, layers.h, attention.h and reductions.h, and peak_loops.h for
// yardsticks.
// Callers include the headers of the tables that they use and write
// kernels().codecs.decode_trits(...).
//
// The scalar reference (ops/kernels/reference.cpp) is the specification. Every other set of tables
// is compiled from one source per idea with the flags of one instruction set. The set in use is
// chosen once at start: the best one that this processor and its operating system support, lowered
// (never raised) by the environment variable TRITGRAD_ISA = reference | avx2 | avx512 | avx512vnni
// | avx512vbmi | avx512amx.
//
// All kernels but `gemm` and those of attention.h give the same bits on every instruction set (no
// fused multiply-add but of exact operations, sums in kSumLanes interleaved lanes); only the
// payload of a NaN that float arithmetic makes is left open. Those others give the same bits for
// any thread count and any place in memory on one instruction set. Pointers need no alignment; n
// may be anything from 0 up.
#pragma once

#include <atomic>
#include <span>

namespace tritgrad {

struct ProductKernels;
struct CodecKernels;
struct UpdateKernels;
struct LayerKernels;
struct AttentionKernels;
struct ReductionKernels;
struct PeakLoops;

// The tables of one instruction set.
struct KernelTables {
  const char* name;  // the value of TRITGRAD_ISA that stands for them
  const ProductKernels& products;
  const CodecKernels& codecs;
  const UpdateKernels& updates;
  const LayerKernels& layers;
  const AttentionKernels& attention;
  const ReductionKernels& reductions;
  const PeakLoops& peak_loops;  // no kernels but yardsticks (peak_loops.h)
};

// The tables in use; null before the first call of kernels().
inline std::atomic<const KernelTables*> kernels_in_use{nullptr};
const KernelTables& choose_kernels_at_start();
inline const KernelTables& kernels() {
  const KernelTables* tables = kernels_in_use.load(std::memory_order_acquire);
  return tables != nullptr ? *tables : choose_kernels_at_start();
}

// Returns all sets of tables that this machine can run, from the reference to the best. avx512amx
// is not among them where TRITGRAD_ISA is below it, as the process must ask the operating system
// for the state of its tile registers.
std::span<const KernelTables* const> supported_kernels();

// Makes kernels() return the tables of that name; for tests. Throws Error for a name that this
// machine cannot run.
void use_kernels(const char* name);

}  // namespace tritgrad
