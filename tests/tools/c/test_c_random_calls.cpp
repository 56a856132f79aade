// Calls of the C interface with arguments by chance: each ends in a result or in a sentence. With
// the address and undefined-behaviour sanitizers (preset asan-ubsan, part of tools/test.sh) this is
// the test that nothing of a program in C is read or written that it did not give.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "engine/random.h"
#include "tests/support/c_handles.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_c_random_calls {
namespace {

constexpr std::int64_t kLabels = 8, kValues = 64;

const std::vector<const char*> kTexts{nullptr,
                                      "",
                                      "{",
                                      "{}",
                                      "[]",
                                      "null",
                                      R"({"data": "iris"})",
                                      R"({"model": "mlp:3", "epochs": 1})",
                                      R"({"model": "mlp:0"})",
                                      R"({"model": 7})",
                                      R"({"epochs": 1e9})",
                                      R"({"seed": 18446744073709551615})",
                                      R"({"set": ["weight.lr=x"]})",
                                      R"({"image": [1, "a", 2]})",
                                      R"({"image": [9223372036854775807, 2, 2]})",
                                      R"({"image": [2, 2, 1], "borrow": true})",
                                      R"({"borrow": true})",
                                      R"({"class_names": 3})",
                                      R"({"class_names": ["a", "b"]})",
                                      R"({"name": ["\\u0000"]})",
                                      "\xff\xfe",
                                      R"({"lr": 1e999})",
                                      R"({"val": 0.5})",
                                      R"({"export": "h", "trits": "2bit"})",
                                      R"({"export": "onnx", "trits": "2bit"})",
                                      R"({"export": 3})",
                                      R"({"trits": "int8"})",
                                      R"({"onnx_ops": "standard"})",
                                      R"({"raw_inputs": "yes"})",
                                      R"({"temperature": 0, "length": 3})",
                                      R"({"top_p": 2})",
                                      R"({"recipes": ["votes"], "seeds": 1, "epochs": 1})",
                                      R"({"recipes": [1], "seeds": -1})"};

// Makes calls, one after the other, each chosen by chance.
class Caller {
 public:
  Caller() {
    const RunHandle run{tg_run_new(iris_.handle, R"({"model": "mlp:3", "epochs": 1})")};
    const ModelHandle model{tg_run_model(run.handle)};
    std::size_t size = 0;
    const void* bytes = tg_model_bytes(model.handle, &size);
    REQUIRE(bytes != nullptr);
    checkpoint_.assign(static_cast<const char*>(bytes), size);
    whole_ = folder_.write("whole.safetensors", checkpoint_);
    std::string text;
    for (int i = 0; i < 40; ++i) text += "All people are born free and equal. ";
    const std::string spec = R"({"model": "llama:1,8:heads=1:ff=8:context=8", "data": "text:)" +
                             folder_.write("text.txt", text) + R"("})";
    const DataHandle sentences{tg_data_open(spec.c_str())};
    const RunHandle writes{tg_run_new(
        sentences.handle,
        R"({"model": "llama:1,8:heads=1:ff=8:context=8", "recipe": "latent8-lm", "epochs": 1})")};
    language_ = folder_ / "language.safetensors";
    REQUIRE(tg_run_save(writes.handle, language_.c_str()) == TG_OK);
  }

  void call() {
    const std::vector<std::function<bool()>> calls{
        [&] { return keep(data_, tg_data_open(text())); },
        [&] { return arrays(); },
        [&] { return targets(); },
        [&] { return tg_data_describe(any(data_)) != nullptr; },
        [&] { return keep(runs_, tg_run_new(below(5) == 0 ? any(data_) : iris_.handle, text())); },
        [&] { return tg_run_step(any(runs_)) == TG_OK; },
        [&] { return tg_run_epoch(any(runs_)) == TG_OK; },
        [&] { return tg_run_finish(any(runs_)) != nullptr; },
        [&] { return tg_run_save(any(runs_), path()) == TG_OK; },
        [&] { return keep(models_, tg_run_model(any(runs_))); },
        [&] { return keep(models_, below(3) == 0 ? whole() : damaged()); },
        [&] { return bytes(); },
        [&] { return tg_model_describe(any(models_)) != nullptr; },
        [&] { return tg_model_inspect(any(models_), text()) != nullptr; },
        [&] { return tg_model_export(any(models_), path(), text()) != nullptr; },
        [&] { return predict(); },
        [&] { return check_rows(); },
        [&] { return compare(); },
        [&] { return generate(); },
        [&] { return tg_set_threads(static_cast<int>(below(9)) - 4) == TG_OK; }};
    const bool success = calls[below(calls.size())]();
    (success ? done : refused) += 1;
    if (!success) {
      CHECK(std::strlen(tg_error()) > 0);
      CHECK(tg_error_status() != TG_OK);
    }
  }

  std::int64_t refused = 0, done = 0;

 private:
  std::size_t below(std::size_t n) {
    return static_cast<std::size_t>(random_below(key_, ++at_, static_cast<std::uint32_t>(n)));
  }
  const char* text() { return kTexts[below(kTexts.size())]; }
  const char* path() {
    const char* names[] = {"x.h", "x.onnx", "x.npz", "x.js", "x", "none/x.h", "m.safetensors"};
    if (below(8) == 0) return nullptr;
    path_ = folder_ / names[below(7)];
    return path_.c_str();
  }

  // Keeps a few runs and models, and closes the oldest; data must outlive their runs.
  template <typename Owned, typename Handle>
  bool keep(std::vector<std::unique_ptr<Owned>>& kept, Handle* handle) {
    if (handle == nullptr) return false;
    kept.push_back(std::make_unique<Owned>(handle));
    if (kept.size() > 6 && !std::is_same_v<Handle, tg_data>) kept.erase(kept.begin());
    return true;
  }
  template <typename Owned>
  auto any(std::vector<std::unique_ptr<Owned>>& kept) -> decltype(kept.front()->handle) {
    return kept.empty() || below(8) == 0 ? nullptr : kept[below(kept.size())]->handle;
  }

  // Sizes of arrays that exist, as others would be the caller's fault, or that none can have.
  struct Sizes {
    std::int64_t rows, features;
  };
  Sizes sizes() {
    const std::int64_t all[] = {-1, 0, 1, 2, 4, 8, INT64_MAX, INT64_MIN, std::int64_t{1} << 33};
    Sizes size{all[below(9)], all[below(9)]};
    if (size.rows > kLabels) size.features = std::min<std::int64_t>(size.features, 0);
    if (size.features > kLabels) size.rows = std::min<std::int64_t>(size.rows, 0);
    return size;
  }
  const void* values() { return below(9) == 0 ? nullptr : values_.data(); }
  tg_type type() { return static_cast<tg_type>(below(6)); }
  // Numbers for so many rows; more than there are would be the caller's fault.
  template <typename Number>
  const Number* column(const Sizes& size, const std::vector<Number>& numbers) {
    return below(9) == 0 || size.rows > kLabels ? nullptr : numbers.data();
  }
  const std::vector<double>& any_targets() { return targets_[below(targets_.size())]; }

  bool arrays() {
    const Sizes size = sizes();
    const tg_type of_labels = type();
    const void* labels = of_labels == TG_INT32   ? static_cast<const void*>(column(size, int32s_))
                         : of_labels == TG_UINT8 ? static_cast<const void*>(column(size, bytes_))
                                                 : column(size, int64s_);
    return keep(data_, tg_data_from_arrays(values(), type(), size.rows, size.features, labels,
                                           of_labels, text()));
  }
  bool targets() {
    const Sizes size = sizes();
    return keep(data_, tg_data_from_targets(values(), type(), size.rows, size.features,
                                            column(size, any_targets()), text()));
  }
  tg_model* whole() { return tg_model_open((below(2) == 0 ? whole_ : language_).c_str()); }
  // A checkpoint that ends early, has a changed byte, or is no checkpoint.
  tg_model* damaged() {
    std::string bytes = checkpoint_;
    const std::size_t place = below(bytes.size());
    if (below(2) == 0) {
      bytes.resize(place);
    } else {
      bytes[place] = static_cast<char>(bytes[place] ^ (1 << below(8)));
    }
    if (below(8) == 0) bytes = "\1\2\3\4";
    // On the heap to the byte, where the sanitizer sees what is read behind the end.
    const std::vector<char> exact(bytes.begin(), bytes.end());
    return tg_model_from_bytes(below(9) == 0 ? nullptr : exact.data(), exact.size());
  }
  bool bytes() {
    std::size_t size = 0;
    return tg_model_bytes(any(models_), below(4) == 0 ? nullptr : &size) != nullptr;
  }
  bool predict() {
    const Sizes size = sizes();
    std::int64_t classes[kLabels];
    float probabilities[3 * kLabels];
    double logits[3 * kLabels];
    return tg_model_predict(any(models_), values(), type(), size.rows, size.features,
                            below(2) == 0 ? classes : nullptr,
                            below(2) == 0 ? probabilities : nullptr,
                            below(2) == 0 ? logits : nullptr) == TG_OK;
  }
  bool check_rows() {
    const Sizes size = sizes();
    const std::int64_t* classes = below(3) == 0 ? nullptr : column(size, int64s_);
    const double* targets = below(3) == 0 ? column(size, any_targets()) : nullptr;
    return tg_model_check_rows(any(models_), values(), type(), size.rows, size.features, classes,
                               targets) == TG_OK;
  }
  bool generate() {
    static constexpr auto kSometimes = [](const char* bytes, std::size_t size, void* context) {
      return static_cast<int>(size == 0 || bytes == nullptr || context != nullptr);
    };
    const char* prompts[] = {nullptr, "", "Al", "\xff\xfe",
                             "a prompt that is longer than it may be"};
    const char* prompt = prompts[below(5)];
    const std::size_t size = prompt == nullptr ? 0 : std::strlen(prompt);
    const tg_writer writer = below(9) == 0 ? nullptr : +kSometimes;
    return tg_model_generate(any(models_), prompt, size, text(), writer,
                             below(2) == 0 ? this : nullptr) == TG_OK;
  }
  bool compare() {
    static constexpr auto kSometimes = [](const tg_progress* progress, void* context) {
      return progress->step == 0 && context != nullptr ? 1 : 0;
    };
    // Few of them train.
    const char* spec = below(8) == 0 ? kTexts[kTexts.size() - 2] : kTexts.back();
    return tg_compare(below(8) == 0 ? nullptr : iris_.handle, spec,
                      below(2) == 0 ? nullptr : +kSometimes,
                      below(2) == 0 ? nullptr : this) != nullptr;
  }

  const RandomKey key_{11, random_stream("c interface"), 0};
  std::uint32_t at_ = 0;
  const TempDir folder_;
  const std::vector<double> values_ = std::vector<double>(kValues, 0.5);
  const std::vector<std::int64_t> int64s_{0, 1, 0, 1, -1, 1, INT64_MAX, INT64_MIN};
  const std::vector<std::int32_t> int32s_{0, 1, 0, 1, 2, 1, INT32_MAX, INT32_MIN};
  const std::vector<std::uint8_t> bytes_{0, 1, 0, 1, 2, 255, 1, 0};
  const std::vector<std::vector<double>> targets_{
      {0.5, 1e9, -3.0, 0.0, 1e300, 2.0, NAN, 1.0},             // usable, up to four rows
      {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0},                // all usable
      {2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5},                // constant
      {3e38, -3e38, 3e38, -3e38, 1.0, 0.0, -0.0, 5e-324},      // near the ends of fp32
      {INFINITY, 0.0, 1.0, 2.0, -INFINITY, 1e39, 3e38, 0.5}};  // the first is none
  const DataHandle iris_{tg_data_open(R"({"data": "iris"})")};
  std::string checkpoint_, whole_, language_, path_;
  std::vector<std::unique_ptr<DataHandle>> data_;
  std::vector<std::unique_ptr<RunHandle>> runs_;
  std::vector<std::unique_ptr<ModelHandle>> models_;
};

}  // namespace

TEST_CASE("c random calls: three thousand end in a result or a sentence") {
  Caller caller;
  for (int i = 0; i < 3000; ++i) caller.call();
  CHECK(caller.refused > 1000);
  CHECK(caller.done > 300);
  CHECK(tg_set_threads(0) == TG_OK);
}

}  // namespace tritgrad::test::test_c_random_calls
