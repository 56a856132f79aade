// The limits of this machine, and the interface of everything that is measured beside them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace tritgrad {

// What registers compute and what memory delivers.
enum class Ceiling {
  kFp32,
  kInt8Trits,
  kDramRead,
  kDramUpdate,
};
inline constexpr int kCeilingCount = 4;

const char* ceiling_name(Ceiling ceiling);

// The measured ceilings, each in its unit: 1e9 operations or bytes a second. A ceiling that this
// machine does not have is NaN.
using CeilingValues = std::map<Ceiling, double>;

// Returns `value` as a share of the ceiling, or NaN where the ceiling was not measured.
double share_of(const CeilingValues& ceilings, Ceiling ceiling, double value);

// One entry of the results, written once for both readers. A number that does not exist is NaN,
// which tables show as a dash and JSON as null.
struct BenchEntry {
  std::string section;           // the rows of a section stand together under this title
  std::vector<std::string> row;  // the cells of its table
  nlohmann::ordered_json json;   // the keys that FORMATS.md lists
};

class Measurement {
 public:
  virtual ~Measurement() = default;

  virtual std::string name() const = 0;
  // The ceilings that shares of this measurement refer to.
  virtual std::set<Ceiling> ceilings() const = 0;
  virtual void measure() = 0;
  // Reports medians over the rounds; at least one round must have been measured.
  virtual BenchEntry entry(const CeilingValues& ceilings) const = 0;
};

// Returns the seconds that one call of body() takes. A first call does not count; after it body is
// called so often that the calls take a few milliseconds together, which makes the clock and
// interruptions negligible.
double seconds_per_call(const std::function<void()>& body);

// Measures one ceiling of all threads together.
std::unique_ptr<Measurement> measurement_of(Ceiling ceiling);

}  // namespace tritgrad
