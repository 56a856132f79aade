#include "engine/files/safetensors_header.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>
#include <utility>

#include "engine/check.h"

namespace tritgrad {
namespace {

constexpr std::size_t kLongestShownName = 80;

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

// What nlohmann-json found wrong, without its own wrapping and without the text it had read, which
// may be most of the file: "[...] parse error at ...: while parsing value - REASON; last read:
// ...".
std::string reason_of(std::string_view what) {
  const std::size_t dash = what.find(" - ");
  if (dash == std::string_view::npos) return "a number out of range";
  const std::string_view rest = what.substr(dash + 3);
  return std::string(rest.substr(0, std::min(rest.find(';'), std::size_t{100})));
}

// Receives the JSON events of a header, which has exactly this form and no other nesting:
//   { "__metadata__": {string: string}, name: {"dtype": s, "shape": [u], "data_offsets": [u, u]} }
class HeaderHandler final : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderHandler(const std::string& file, Header& header) : file_(file), header_(header) {}

  bool null() override { refuse_value("null"); }
  bool boolean(bool) override { refuse_value("a boolean"); }
  bool binary(binary_t&) override { refuse_value("binary data"); }

  bool number_integer(number_integer_t value) override {
    if (!in_array()) refuse_value("a number");
    fail(file_, ": ", where(), " holds the negative number ", value);
  }
  bool number_float(number_float_t, const string_t& text) override {
    if (!in_array()) refuse_value("a number");
    fail(file_, ": ", where(), " holds ", shown_name(text), ", expected a whole number below 2^64");
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::kShape) {
      tensor_.shape.push_back(value);
    } else if (place_ == Place::kOffsets) {
      check(offsets_.size() < 2, file_, ": ", where(), " has more than two numbers");
      offsets_.push_back(value);
    } else {
      refuse_value("a number");
    }
    return true;
  }

  bool string(string_t& value) override {
    if (place_ == Place::kMetadata) {
      const bool is_new = header_.metadata.emplace(key_, value).second;
      check(is_new, file_, ": metadata key ", shown_name(key_), " appears twice");
    } else if (place_ == Place::kTensor && key_ == "dtype") {
      dtype_ = find_dtype(value);
      check(dtype_.has_value(), file_, ": tensor ", shown_name(tensor_.name),
            " has the unknown dtype ", shown_name(value));
    } else {
      refuse_value("a string");
    }
    return true;
  }

  bool key(string_t& value) override {
    key_ = value;
    if (place_ == Place::kTensor) {
      const bool known = key_ == "dtype" || key_ == "shape" || key_ == "data_offsets";
      check(known, file_, ": tensor ", shown_name(tensor_.name), " has the unknown field ",
            shown_name(key_));
      check(fields_.insert(key_).second, file_, ": tensor ", shown_name(tensor_.name),
            " has the field ", shown_name(key_), " twice");
    } else if (place_ == Place::kHeader) {
      check(names_.insert(key_).second, file_, ": the header has ", shown_name(key_), " twice");
      if (key_ != kMetadataKey) check_tensor_name(key_, file_);
    }
    return true;
  }

  bool start_object(std::size_t) override {
    if (place_ == Place::kOutside) {
      place_ = Place::kHeader;
    } else if (place_ == Place::kHeader && key_ == kMetadataKey) {
      place_ = Place::kMetadata;
    } else if (place_ == Place::kHeader) {
      place_ = Place::kTensor;
      tensor_ = HeaderTensor{};
      tensor_.name = key_;
      dtype_.reset();
      offsets_.clear();
      fields_.clear();
    } else {
      refuse_value("an object");
    }
    return true;
  }

  bool end_object() override {
    if (place_ == Place::kTensor) {
      for (const char* field : {"dtype", "shape", "data_offsets"}) {
        check(fields_.contains(field), file_, ": tensor ", shown_name(tensor_.name), " has no ",
              field);
      }
      tensor_.dtype = *dtype_;
      tensor_.begin = offsets_[0];
      tensor_.end = offsets_[1];
      header_.tensors.push_back(std::move(tensor_));
    }
    place_ = place_ == Place::kHeader ? Place::kOutside : Place::kHeader;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::kTensor || key_ == "dtype") refuse_value("an array");
    place_ = key_ == "shape" ? Place::kShape : Place::kOffsets;
    return true;
  }

  bool end_array() override {
    check(place_ == Place::kShape || offsets_.size() == 2, file_, ": ", where(), " has ",
          offsets_.size(), " numbers, expected two");
    place_ = Place::kTensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception& error) override {
    fail(file_, ": the header is not valid JSON at its byte ", position, ": ",
         reason_of(error.what()));
  }

 private:
  enum class Place { kOutside, kHeader, kMetadata, kTensor, kShape, kOffsets };

  bool in_array() const { return place_ == Place::kShape || place_ == Place::kOffsets; }

  // The value being read.
  std::string where() const {
    switch (place_) {
      case Place::kOutside:
        return "the header";
      case Place::kHeader:
        return key_ == kMetadataKey ? "__metadata__" : "tensor " + shown_name(key_);
      case Place::kMetadata:
        return "metadata key " + shown_name(key_);
      default:
        return "the " + key_ + " of tensor " + shown_name(tensor_.name);
    }
  }

  std::string_view expected() const {
    switch (place_) {
      case Place::kOutside:
      case Place::kHeader:
        return "an object";
      case Place::kMetadata:
        return "a string";
      case Place::kTensor:
        return key_ == "dtype" ? "a string" : "an array of numbers";
      default:
        return "whole numbers only";
    }
  }

  [[noreturn]] void refuse_value(std::string_view found) const {
    fail(file_, ": ", where(), " holds ", found, ", expected ", expected());
  }

  const std::string& file_;
  Header& header_;
  Place place_ = Place::kOutside;
  std::string key_;
  std::unordered_set<std::string> names_;
  // The tensor being read.
  HeaderTensor tensor_;
  std::optional<Dtype> dtype_;
  std::vector<std::uint64_t> offsets_;
  std::unordered_set<std::string> fields_;
};

}  // namespace

bool is_integrity_key(std::string_view key) {
  return key.starts_with(kFileHashKey) || key.starts_with(kIntegrityKey);
}

std::string shown_name(std::string_view name) {
  std::size_t length = std::min(name.size(), kLongestShownName);
  // Not in the middle of a UTF-8 sequence.
  while (length < name.size() && length > 0 && (name[length] & 0xc0) == 0x80) --length;
  std::string text(name.substr(0, length));
  std::replace_if(text.begin(), text.end(), is_control, '?');
  return "'" + text + (length < name.size() ? "...'" : "'");
}

void check_tensor_name(std::string_view name, const std::string& file) {
  check(!name.empty(), file, ": a tensor has an empty name");
  check(name != kMetadataKey, file, ": no tensor may be named ", kMetadataKey);
  check(std::none_of(name.begin(), name.end(), is_control), file, ": the tensor name ",
        shown_name(name), " holds a control character");
}

std::uint64_t bytes_of_shape(const std::vector<std::uint64_t>& shape, Dtype dtype,
                             std::string_view name, const std::string& file) {
  std::uint64_t bytes = dtype_bytes(dtype);
  bool overflow = false;
  for (const std::uint64_t extent : shape) {
    overflow = __builtin_mul_overflow(bytes, extent, &bytes) || overflow;
  }
  check(!overflow, file, ": the shape of tensor ", shown_name(name), " has more than 2^64 bytes");
  return bytes;
}

Header parse_header(std::string_view text, const std::string& file) {
  check(text.starts_with('{'), file, ": the header does not begin with '{'");
  Header header;
  HeaderHandler handler(file, header);
  nlohmann::json::sax_parse(text.begin(), text.end(), &handler);
  return header;
}

}  // namespace tritgrad
