#include "engine/memory/parallel.h"

#include <omp.h>

#include <atomic>
#include <exception>

namespace tritgrad {
namespace {

std::atomic<int> g_threads{0};  // programs in C may set it while another thread trains

}  // namespace

void set_thread_count(int threads) { g_threads = std::max(threads, 0); }

int thread_count() {
  const int threads = g_threads;
  return threads > 0 ? threads : omp_get_max_threads();
}

// The number is a variable of the calling thread, not of the process.
OnThisThread::OnThisThread() : threads_before_(omp_get_max_threads()) { omp_set_num_threads(1); }

OnThisThread::~OnThisThread() { omp_set_num_threads(threads_before_); }

namespace detail {

void run_units(std::int64_t units, void (*body)(void* context, std::int64_t unit), void* context) {
  const int threads = static_cast<int>(std::min<std::int64_t>(thread_count(), units));
  if (threads <= 1 || omp_in_parallel()) {
    for (std::int64_t unit = 0; unit < units; ++unit) body(context, unit);
    return;
  }
  std::exception_ptr error;
  std::int64_t error_unit = units;
#pragma omp parallel for schedule(static) num_threads(threads)
  for (std::int64_t unit = 0; unit < units; ++unit) {
    try {
      body(context, unit);
    } catch (...) {
#pragma omp critical(tritgrad_run_units)
      if (unit < error_unit) {
        error_unit = unit;
        error = std::current_exception();
      }
    }
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace detail
}  // namespace tritgrad
