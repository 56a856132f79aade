// The limits of this machine, measured: what its registers compute and what its memory delivers.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tritgrad {

// Returns the seconds that one call of body() takes. A first call does not count; after it body is
// called so often that the calls take a few milliseconds together, which makes the clock and
// interruptions negligible.
double seconds_per_call(const std::function<void()>& body);

enum class Ceiling {
  kFp32,
  kInt8Trits,
  kDramRead,
  kDramUpdate,
};
inline constexpr int kCeilingCount = 4;

const char* ceiling_name(Ceiling ceiling);
const char* ceiling_unit(Ceiling ceiling);

struct CeilingResult {
  Ceiling ceiling;
  std::optional<double> value;  // in the ceiling's unit; empty where this machine has no such thing
  std::string note;             // says how it was measured, or why it was not
};

// One ceiling of all threads together, measured again in every round.
class CeilingCase {
 public:
  explicit CeilingCase(Ceiling ceiling) : ceiling_(ceiling) {}

  std::string name() const { return ceiling_name(ceiling_); }
  void measure();
  CeilingResult result() const;

 private:
  Ceiling ceiling_;
  std::vector<double> per_second_;
};

}  // namespace tritgrad
