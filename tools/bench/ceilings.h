// The machine's own limits, measured: what its registers compute and its memory delivers.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tritgrad {

enum class Ceiling {
  kFp32,
  kBf16,
  kInt8Trits,
  kInt8Int8,
  kL2Read,
  kDramRead,
  kDramUpdate,
};
inline constexpr int kCeilingCount = 7;

const char* ceiling_name(Ceiling ceiling);
const char* ceiling_unit(Ceiling ceiling);

struct CeilingResult {
  Ceiling ceiling;
  std::optional<double> value;  // in the unit; none where this machine has no such thing
  std::string note;             // how it was measured, or why it was not
};

// One ceiling on all threads, measured again in every round.
class CeilingCase {
 public:
  explicit CeilingCase(Ceiling ceiling);

  std::string name() const { return ceiling_name(ceiling_); }
  void measure();
  CeilingResult result() const;

 private:
  Ceiling ceiling_;
  std::vector<double> samples_;
  std::string note_;
};

}  // namespace tritgrad
