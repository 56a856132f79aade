// Calls of the C interface with arguments that something else chooses, chance or a fuzzer: each
// ends in a result or in a sentence.
//
// Handles are open ones or NULL, as others would be the caller's fault, and so would be arrays of
// fewer numbers than their sizes say; these have as many to the byte, so that a sanitizer sees what
// is read behind the end.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/support/c_handles.h"
#include "tests/support/support_files.h"

namespace tritgrad::test {

// Options and specs, of which most are wrong somewhere.
inline const std::vector<const char*> kCallTexts{
    nullptr,
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

// What calls begin from: an open data set and checkpoints, in a folder for whatever they write.
struct CallerFiles {
  CallerFiles() {
    const RunHandle run{tg_run_new(iris.handle, R"({"model": "mlp:3", "epochs": 1})")};
    const ModelHandle model{tg_run_model(run.handle)};
    std::size_t size = 0;
    const void* bytes = tg_model_bytes(model.handle, &size);
    if (bytes == nullptr) throw std::runtime_error(tg_error());
    checkpoint.assign(static_cast<const char*>(bytes), size);
    whole = folder.write("whole.safetensors", checkpoint);
    std::string text;
    for (int i = 0; i < 40; ++i) text += "All people are born free and equal. ";
    const std::string spec = R"({"model": "llama:1,8:heads=1:ff=8:context=8", "data": "text:)" +
                             folder.write("text.txt", text) + R"("})";
    const DataHandle sentences{tg_data_open(spec.c_str())};
    const RunHandle writes{tg_run_new(
        sentences.handle,
        R"({"model": "llama:1,8:heads=1:ff=8:context=8", "recipe": "latent8-lm", "epochs": 1})")};
    language = folder / "language.safetensors";
    if (tg_run_save(writes.handle, language.c_str()) != TG_OK) throw std::runtime_error(tg_error());
  }

  const TempDir folder;
  const DataHandle iris{tg_data_open(R"({"data": "iris"})")};
  std::string checkpoint, whole, language;
};

// Makes calls, one after the other. `Choices` has below(n), a number below n, and text(), options
// or a spec, which may be NULL and lives as long as the choices.
template <typename Choices>
class Caller {
 public:
  Caller(const CallerFiles& files, Choices& choices) : files_(files), choices_(choices) {}

  // Returns whether the call had a result.
  bool call() {
    const std::vector<std::function<bool()>> calls{
        [&] { return keep(data_, tg_data_open(text())); },
        [&] { return arrays(); },
        [&] { return targets(); },
        [&] { return tg_data_describe(any(data_)) != nullptr; },
        [&] {
          return keep(runs_, tg_run_new(below(5) == 0 ? any(data_) : files_.iris.handle, text()));
        },
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
    return calls[below(calls.size())]();
  }

 private:
  static constexpr std::int64_t kLabels = 8;
  static constexpr std::size_t kValues = 64;
  static constexpr std::int64_t kMostOutputs = 64;  // more than any data has classes

  std::size_t below(std::size_t n) { return choices_.below(n); }
  const char* text() { return choices_.text(); }
  const char* path() {
    const char* names[] = {"x.h", "x.onnx", "x.npz", "x.js", "x", "none/x.h", "m.safetensors"};
    if (below(8) == 0) return nullptr;
    path_ = files_.folder / names[below(7)];
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

  // Sizes of arrays that can exist, or that none can have.
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

  // Keeps a copy, as data that borrow it want, and no byte behind it.
  template <typename Number>
  const Number* exact(const Number* numbers, std::int64_t count) {
    auto copy = std::make_unique<std::byte[]>(static_cast<std::size_t>(count) * sizeof(Number));
    std::memcpy(copy.get(), numbers, static_cast<std::size_t>(count) * sizeof(Number));
    arrays_.push_back(std::move(copy));
    return reinterpret_cast<const Number*>(arrays_.back().get());
  }

  tg_type type() { return static_cast<tg_type>(below(6)); }
  const void* values(tg_type type, const Sizes& size) {
    if (below(9) == 0) return nullptr;
    const bool exist = size.rows > 0 && size.features > 0 && size.rows <= kLabels;
    const std::int64_t width = type == TG_UINT8 ? 1 : type == TG_FLOAT32 ? 4 : 8;
    const auto* bytes =
        reinterpret_cast<const std::uint8_t*>(values_[below(values_.size())].data());
    return exact(bytes, exist ? size.rows * size.features * width : 0);
  }
  // Numbers for so many rows; more than there are would be the caller's fault.
  template <typename Number>
  const Number* column(const Sizes& size, const std::vector<Number>& numbers) {
    if (below(9) == 0 || size.rows > kLabels) return nullptr;
    return exact(numbers.data(), std::max<std::int64_t>(size.rows, 0));
  }
  const std::vector<double>& any_targets() { return targets_[below(targets_.size())]; }

  bool arrays() {
    const Sizes size = sizes();
    const tg_type of_labels = type();
    const void* labels = of_labels == TG_INT32   ? static_cast<const void*>(column(size, int32s_))
                         : of_labels == TG_UINT8 ? static_cast<const void*>(column(size, bytes_))
                                                 : column(size, int64s_);
    const tg_type of_values = type();
    return keep(data_, tg_data_from_arrays(values(of_values, size), of_values, size.rows,
                                           size.features, labels, of_labels, text()));
  }
  bool targets() {
    const Sizes size = sizes();
    const tg_type of_values = type();
    return keep(data_, tg_data_from_targets(values(of_values, size), of_values, size.rows,
                                            size.features, column(size, any_targets()), text()));
  }
  tg_model* whole() {
    return tg_model_open((below(2) == 0 ? files_.whole : files_.language).c_str());
  }
  // A checkpoint that ends early, has a changed byte, or is no checkpoint.
  tg_model* damaged() {
    std::string bytes = files_.checkpoint;
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
    const tg_type of_values = type();
    std::int64_t classes[kLabels];
    float probabilities[kMostOutputs * kLabels];
    double logits[kMostOutputs * kLabels];
    return tg_model_predict(any(models_), values(of_values, size), of_values, size.rows,
                            size.features, below(2) == 0 ? classes : nullptr,
                            below(2) == 0 ? probabilities : nullptr,
                            below(2) == 0 ? logits : nullptr) == TG_OK;
  }
  bool check_rows() {
    const Sizes size = sizes();
    const std::int64_t* classes = below(3) == 0 ? nullptr : column(size, int64s_);
    const double* targets = below(3) == 0 ? column(size, any_targets()) : nullptr;
    const tg_type of_values = type();
    return tg_model_check_rows(any(models_), values(of_values, size), of_values, size.rows,
                               size.features, classes, targets) == TG_OK;
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
    const char* spec = below(8) == 0 ? kCallTexts[kCallTexts.size() - 2] : kCallTexts.back();
    return tg_compare(below(8) == 0 ? nullptr : files_.iris.handle, spec,
                      below(2) == 0 ? nullptr : +kSometimes,
                      below(2) == 0 ? nullptr : this) != nullptr;
  }

  const CallerFiles& files_;
  Choices& choices_;
  // As bytes of the type that a call says: numbers of each, and some that are none or too large.
  const std::vector<std::vector<double>> values_{
      std::vector<double>(kValues, 0.5), std::vector<double>(kValues, NAN),
      std::vector<double>(kValues, 1e300), std::vector<double>(kValues, -INFINITY)};
  const std::vector<std::int64_t> int64s_{0, 1, 0, 1, -1, 1, INT64_MAX, INT64_MIN};
  const std::vector<std::int32_t> int32s_{0, 1, 0, 1, 2, 1, INT32_MAX, INT32_MIN};
  const std::vector<std::uint8_t> bytes_{0, 1, 0, 1, 2, 255, 1, 0};
  const std::vector<std::vector<double>> targets_{
      {0.5, 1e9, -3.0, 0.0, 1e300, 2.0, NAN, 1.0},             // usable, up to four rows
      {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0},                // all usable
      {2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5},                // constant
      {3e38, -3e38, 3e38, -3e38, 1.0, 0.0, -0.0, 5e-324},      // near the ends of fp32
      {INFINITY, 0.0, 1.0, 2.0, -INFINITY, 1e39, 3e38, 0.5}};  // the first is none
  std::string path_;
  std::vector<std::unique_ptr<std::byte[]>> arrays_;  // which data that borrow them need
  std::vector<std::unique_ptr<DataHandle>> data_;
  std::vector<std::unique_ptr<RunHandle>> runs_;
  std::vector<std::unique_ptr<ModelHandle>> models_;
};

}  // namespace tritgrad::test
