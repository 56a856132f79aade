// Errors with values. Every refusal in the library is one sentence that names the argument, what
// was found, what was expected and what to do. Library code throws; it never prints and never
// exits.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace tritgrad {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Training that ran away: a loss, a gradient or a weight is no longer finite. It is an error of its
// own because whoever tries several learning rates goes on where every other error must end the
// work.
class Diverged : public Error {
 public:
  using Error::Error;
};

// A file, a folder or a data set of that name is not there; and memory that is not there. Programs
// that call the library tell these from what is wrong in itself.
class NotFound : public Error {
 public:
  using Error::Error;
};
class OutOfMemory : public Error {
 public:
  using Error::Error;
};

// Joins its parts: "width ", 30, " of ", name -> "width 30 of NAME".
template <typename... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

template <typename... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw Error(concat(parts...));
}

// Throws an error of the same kind, NotFound, OutOfMemory or else Error, with more words.
[[noreturn]] inline void fail_again(const Error& error, const std::string& before,
                                    const std::string& behind = "") {
  const std::string sentence = before + error.what() + behind;
  if (dynamic_cast<const NotFound*>(&error) != nullptr) throw NotFound(sentence);
  if (dynamic_cast<const OutOfMemory*>(&error) != nullptr) throw OutOfMemory(sentence);
  throw Error(sentence);
}

// Throws Error unless the condition holds. The message is only put together when the condition is
// false. Parts that must be computed first are computed in any case: where that costs more than the
// check is worth, write `if` and fail().
template <typename... Parts>
void check(bool condition, const Parts&... parts) {
  if (!condition) [[unlikely]] {
    fail(parts...);
  }
}

}  // namespace tritgrad
