// Handles of the C interface in several threads at once: what one computes does not depend on the
// others.
#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/c_handles.h"

namespace tritgrad::test::test_c_threads {
namespace {

// Trains, opens the model and predicts; returns the checkpoint's bytes and the logits, or the
// sentence of a failure. It makes no assertions, which are of the first thread alone.
std::string train_and_predict(const char* data_spec, const char* run_spec) {
  const DataHandle data{tg_data_open(data_spec)};
  const RunHandle run{tg_run_new(data.handle, run_spec)};
  if (tg_run_step(run.handle) != TG_OK || tg_run_all(run.handle) != TG_OK) return tg_error();
  const ModelHandle model{tg_run_model(run.handle)};
  std::size_t size = 0;
  const void* bytes = tg_model_bytes(model.handle, &size);
  if (bytes == nullptr) return tg_error();
  std::string all(static_cast<const char*>(bytes), size);
  const CArrays wine("wine");
  std::vector<double> logits(static_cast<std::size_t>(3 * wine.dataset.rows));
  if (tg_model_predict(model.handle, wine.values.data(), TG_FLOAT64, wine.dataset.rows, 13, nullptr,
                       nullptr, logits.data()) != TG_OK) {
    return tg_error();
  }
  return all.append(reinterpret_cast<const char*>(logits.data()), logits.size() * sizeof(double));
}

constexpr const char* kData = R"({"data": "wine"})";
constexpr const char* kFirst = R"({"model": "mlp:16", "epochs": 3, "seed": 1})";
constexpr const char* kSecond =
    R"({"model": "mlp:8", "epochs": 3, "seed": 2, "recipe": "latent8"})";

}  // namespace

TEST_CASE(
    "c threads: two runs and models at once equal those alone, however many threads each has") {
  const std::string first = train_and_predict(kData, kFirst);
  const std::string second = train_and_predict(kData, kSecond);
  CHECK(first.size() > 1000);
  CHECK(second.size() > 1000);
  std::string first_at_once, second_at_once;
  std::atomic<bool> over{false};
  std::thread one([&] { first_at_once = train_and_predict(kData, kFirst); });
  std::thread two([&] { second_at_once = train_and_predict(kData, kSecond); });
  std::thread three([&] {
    for (int threads = 1; !over; threads = threads % 4 + 1) {
      tg_set_threads(threads);
      std::this_thread::yield();
    }
  });
  one.join();
  two.join();
  over = true;
  three.join();
  CHECK(tg_set_threads(0) == TG_OK);
  CHECK((first_at_once == first));
  CHECK((second_at_once == second));
}

TEST_CASE("c threads: a failure is told to the thread that it happened in") {
  CHECK(tg_data_open("{") == nullptr);
  const std::string here = tg_error();
  std::string before, after;
  std::thread other([&] {
    before = tg_error();
    tg_data_open(R"({"data": "irs"})");
    after = tg_error();
  });
  other.join();
  CHECK(before.empty());
  CHECK(after.find("irs") != std::string::npos);
  CHECK(tg_error() == here);
}

}  // namespace tritgrad::test::test_c_threads
